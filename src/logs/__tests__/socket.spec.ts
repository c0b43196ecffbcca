import { ApiError } from '../../api';
import { LogSocket } from '../socket';
import { ILogFrame } from '../types';
import { block, FakeSocket, frame, wire } from './fakes';

class Taker {
  readonly frames: ILogFrame[] = [];
  readonly takes: (() => void)[] = [];
  readonly errors: ApiError[] = [];
  ended = 0;

  frame(taken: ILogFrame, done: () => void): void {
    this.frames.push(taken);
    this.takes.push(done);
  }

  end(): void {
    this.ended++;
  }

  error(error: ApiError): void {
    this.errors.push(error);
  }
}

function setUp(): { socket: LogSocket; made: FakeSocket[] } {
  const made: FakeSocket[] = [];
  const connect = () => {
    made.push(new FakeSocket());
    return made[made.length - 1];
  };
  const backoff = { random: () => 0.5 };
  return { socket: new LogSocket({ connect, backoff }), made };
}

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

describe('LogSocket', () => {
  it('opens with the first subscription and closes with the last', () => {
    const { socket, made } = setUp();
    expect(made).toHaveLength(0);
    const one = socket.subscribe({ run_id: 'a' }, 'c0', new Taker());
    const two = socket.subscribe({ run_id: 'b' }, undefined, new Taker());
    expect(made).toHaveLength(1);
    made[0].open();
    expect(made[0].sent).toEqual([
      { type: 'subscribe', id: 1, run_id: 'a', cursor: 'c0' },
      { type: 'subscribe', id: 2, run_id: 'b' }
    ]);
    one.dispose();
    expect(made[0].sent[2]).toEqual({ type: 'unsubscribe', id: 1 });
    expect(made[0].closed).toBe(false);
    two.dispose();
    expect(made[0].closed).toBe(true);
    expect(socket.state).toBe('idle');
  });

  it('acknowledges what was taken in', () => {
    const { socket, made } = setUp();
    const taker = new Taker();
    socket.subscribe({ run_id: 'a', ranks: [0, 2] }, undefined, taker);
    made[0].open();
    made[0].say({ type: 'subscribed', id: 1 });
    made[0].say(wire(1, 1, frame('c1', block(['x', 'y']))));
    expect(taker.frames[0].blocks[0].lines).toBe('x\ny');
    expect(made[0].sent).toHaveLength(1);
    taker.takes[0]();
    expect(made[0].sent[1]).toEqual({ type: 'ack', id: 1, seq: 1 });
  });

  it('goes on behind the last frame when the connection broke', () => {
    const { socket, made } = setUp();
    const taker = new Taker();
    socket.subscribe({ run_id: 'a' }, 'c0', taker);
    made[0].open();
    made[0].say(wire(1, 1, frame('c1', block(['x']))));
    made[0].break();
    expect(socket.state).toBe('waiting');
    jest.advanceTimersByTime(500);
    made[1].open();
    expect(made[1].sent[0]).toMatchObject({ cursor: 'c1' });
    // An acknowledgement of the old connection's frame is not one of the new one's.
    taker.takes[0]();
    expect(made[1].sent).toHaveLength(1);
    // What the old connection still says is not heard.
    made[0].say(wire(1, 2, frame('c2', block(['y']))));
    expect(taker.frames).toHaveLength(1);
  });

  it('waits longer each time, and short again after a word', () => {
    const { socket, made } = setUp();
    socket.subscribe({ run_id: 'a' }, undefined, new Taker());
    made[0].break();
    jest.advanceTimersByTime(500);
    made[1].break();
    jest.advanceTimersByTime(999);
    expect(made).toHaveLength(2);
    jest.advanceTimersByTime(1);
    expect(made).toHaveLength(3);
    made[2].open();
    made[2].say({ type: 'subscribed', id: 1 });
    made[2].break();
    jest.advanceTimersByTime(500);
    expect(made).toHaveLength(4);
  });

  it('connects anew at once after sleep', () => {
    const { socket, made } = setUp();
    socket.subscribe({ run_id: 'a' }, undefined, new Taker());
    made[0].open();
    made[0].say(wire(1, 1, frame('c1', block(['x']))));
    socket.reconnect();
    expect(made[0].closed).toBe(true);
    made[1].open();
    expect(made[1].sent[0]).toMatchObject({ type: 'subscribe', cursor: 'c1' });
  });

  it('ends with the run, and does not subscribe to it again', () => {
    const { socket, made } = setUp();
    const [one, two] = [new Taker(), new Taker()];
    socket.subscribe({ run_id: 'a' }, undefined, one);
    socket.subscribe({ run_id: 'b' }, undefined, two);
    made[0].open();
    made[0].say({ type: 'end', id: 1 });
    expect(one.ended).toBe(1);
    made[0].break();
    jest.advanceTimersByTime(500);
    made[1].open();
    expect(made[1].sent).toEqual([{ type: 'subscribe', id: 2, run_id: 'b' }]);
  });

  it('hands errors on, and closes without a subscription', () => {
    const { socket, made } = setUp();
    const [one, two] = [new Taker(), new Taker()];
    socket.subscribe({ run_id: 'a' }, undefined, one);
    socket.subscribe({ run_id: 'b' }, undefined, two);
    made[0].open();
    const error = { code: 'not_found', message: 'no run', hint: null };
    made[0].say({ type: 'error', id: 1, error });
    expect(one.errors[0].code).toBe('not_found');
    expect(socket.state).toBe('open');
    made[0].say({ type: 'error', id: 2, error });
    expect(two.errors[0].message).toBe('no run');
    expect(socket.state).toBe('idle');
  });

  it('is quiet once disposed of', () => {
    const { socket, made } = setUp();
    socket.subscribe({ run_id: 'a' }, undefined, new Taker());
    socket.dispose();
    expect(made[0].closed).toBe(true);
    jest.advanceTimersByTime(60_000);
    expect(made).toHaveLength(1);
  });
});
