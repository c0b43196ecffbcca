import { until } from '../../__tests__/until';
import { ApiError } from '../../api';
import { Watched } from '../watched';

const FAST = { poll: 50, soon: 5 };

describe('Watched', () => {
  it('reads at the pace of the poll, sooner while more is on its way, and not when nobody looks', async () => {
    let calls = 0;
    const watched = new Watched(
      () => {
        calls += 1;
        return Promise.resolve({ loading: calls < 4 });
      },
      { poll: 10_000, soon: 5 }
    );
    expect(calls).toBe(0);
    watched.start();
    await until(() => calls === 4);
    await new Promise(resolve => setTimeout(resolve, 50));
    expect(calls).toBe(4);
    watched.stop();
    watched.dispose();
  });

  it('stops in the midst of it', async () => {
    let calls = 0;
    const watched = new Watched(() => {
      calls += 1;
      return Promise.resolve({ loading: true });
    }, FAST);
    watched.start();
    await until(() => calls > 2);
    watched.stop();
    await new Promise(resolve => setTimeout(resolve, 30));
    const before = calls;
    await new Promise(resolve => setTimeout(resolve, 150));
    expect(calls).toBe(before);
    watched.start();
    await until(() => calls > before);
    watched.dispose();
  });

  it('keeps what it has when it fails, and says so', async () => {
    let fails = false;
    const watched = new Watched(
      () =>
        fails
          ? Promise.reject(new Error('no'))
          : Promise.resolve({ loading: false }),
      { poll: 10_000, soon: 5 }
    );
    watched.start();
    await until(() => watched.value !== null);
    fails = true;
    watched.refresh();
    await until(() => watched.error !== null);
    expect(watched.value).not.toBeNull();
    fails = false;
    watched.refresh();
    await until(() => watched.error === null);
    watched.dispose();
  });

  it('forgets what is there no more', async () => {
    let isGone = false;
    const watched = new Watched(
      () =>
        isGone
          ? Promise.reject(ApiError.local('not_found', 'it is gone', 404))
          : Promise.resolve({ loading: false }),
      { poll: 10_000, soon: 5 }
    );
    watched.start();
    await until(() => watched.value !== null);
    isGone = true;
    watched.refresh();
    await until(() => watched.error !== null);
    expect(watched.value).toBeNull();
    isGone = false;
    watched.refresh();
    await until(() => watched.value !== null);
    expect(watched.error).toBeNull();
    watched.dispose();
  });
});
