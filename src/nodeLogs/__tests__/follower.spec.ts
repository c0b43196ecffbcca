import { until } from '../../__tests__/until';
import { ApiError } from '../../api';
import { block, frame, page } from '../../logs/__tests__/fakes';
import { ILogHandler } from '../../logs/socket';
import { ILogFrame, ILogPage } from '../../logs/types';
import { Follower } from '../follower';

const PACE = { soon: 5, late: 20, trouble: 20 };

const EMPTY = (at: string) => page(at, []);
const LINES = (at: string, more = false) =>
  page('0', [frame(at, block([`line ${at}`]))], { at_end: !more });

function failure(code: string, status: number): ApiError {
  return new ApiError({ code, message: code, hint: null, detail: {} }, status);
}

function setHidden(hidden: boolean): void {
  Object.defineProperty(document, 'hidden', {
    configurable: true,
    get: () => hidden
  });
  document.dispatchEvent(new Event('visibilitychange'));
}

describe('Follower', () => {
  let answers: (ILogPage | ApiError)[];
  let asked: string[];
  let frames: ILogFrame[];
  let taken: (() => void)[];
  let errors: ApiError[];
  let troubles: (ApiError | null)[];
  let follower: Follower;

  const handler: ILogHandler = {
    frame: (item, done) => {
      frames.push(item);
      taken.push(done);
    },
    end: () => undefined,
    error: error => errors.push(error)
  };

  function follow(...given: (ILogPage | ApiError)[]): void {
    answers = given;
    follower = new Follower(
      cursor => {
        asked.push(cursor);
        const answer = answers.shift() ?? EMPTY(cursor);
        return answer instanceof ApiError
          ? Promise.reject(answer)
          : Promise.resolve(answer);
      },
      'begin',
      handler,
      trouble => troubles.push(trouble),
      PACE
    );
  }

  beforeEach(() => {
    [asked, frames, taken, errors, troubles] = [[], [], [], [], []];
  });

  afterEach(() => {
    follower.dispose();
    setHidden(false);
  });

  it('asks behind what it was given last, and not before that was shown', async () => {
    follow(LINES('a', true), LINES('b'));
    await until(() => frames.length === 1);
    await new Promise(resolve => setTimeout(resolve, 60));
    expect(asked).toEqual(['begin']);
    taken[0]();
    await until(() => frames.length === 2);
    expect(asked).toEqual(['begin', 'a']);
    taken[1]();
    await until(() => asked.length > 3);
    expect(asked.slice(2, 4)).toEqual(['b', 'b']);
  });

  it('asks nothing while the page is hidden, and again once it is seen', async () => {
    setHidden(true);
    follow();
    await new Promise(resolve => setTimeout(resolve, 80));
    expect(asked).toEqual([]);
    setHidden(false);
    await until(() => asked.length > 0);
  });

  it('waits where there are too many calls, tells it, and goes on', async () => {
    follow(failure('aws_throttled', 502), LINES('a'));
    await until(() => frames.length === 1);
    expect(asked).toEqual(['begin', 'begin']);
    expect(troubles.map(trouble => trouble?.code)).toEqual([
      'aws_throttled',
      undefined
    ]);
    expect(errors).toEqual([]);
  });

  it('gives up after eleven failures in a row', async () => {
    follow(...Array.from({ length: 20 }, () => failure('aws_failed', 502)));
    await until(() => errors.length === 1);
    expect(asked).toHaveLength(11);
    await new Promise(resolve => setTimeout(resolve, 60));
    expect(asked).toHaveLength(11);
  });

  it('ends at once where it is refused', async () => {
    follow(failure('missing_right', 403));
    await until(() => errors.length === 1);
    expect(errors[0].code).toBe('missing_right');
    expect(asked).toHaveLength(1);
  });

  it('asks nothing any more once it is disposed of', async () => {
    follow();
    await until(() => asked.length > 1);
    follower.dispose();
    const before = asked.length;
    await new Promise(resolve => setTimeout(resolve, 60));
    expect(asked).toHaveLength(before);
  });
});
