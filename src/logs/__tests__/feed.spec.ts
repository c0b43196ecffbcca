import { ApiError } from '../../api';
import { LogFeed } from '../feed';
import { LogSearch } from '../search';
import { LogWindow } from '../window';
import { FakeClient } from './fakeClient';
import { block, frame } from './fakes';

function shown(feed: LogFeed): number[] {
  const { window } = feed;
  return Array.from({ length: window.length }, (_, at) =>
    Number(window.row(window.first + at)?.text)
  );
}

function expectNoGap(feed: LogFeed): void {
  const numbers = shown(feed);
  numbers.forEach((value, at) => expect(value).toBe(numbers[0] + at));
}

function drawn(): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, 400));
}

describe('LogFeed', () => {
  it('opens at the end and goes on from there', async () => {
    const client = new FakeClient(10_000);
    const feed = new LogFeed({ client, runId: 'a' });
    await feed.follow();
    expect(shown(feed)[0]).toBe(9_500);
    expect(client.follows).toMatchObject([{ cursor: '10000' }]);
    client.grow(100);
    expect(client.taken).toBe(0);
    await drawn();
    expect(client.taken).toBe(1);
    expect(shown(feed)[feed.window.length - 1]).toBe(10_099);
    expectNoGap(feed);
    feed.dispose();
    expect(client.handler).toBeNull();
  });

  it('keeps no line of another choice when one cannot be had', async () => {
    const client = new FakeClient(10);
    const feed = new LogFeed({ client, runId: 'a' });
    await feed.follow();
    expect(feed.window.length).toBe(10);
    client.failure = ApiError.local('no_such_log', 'the run has no rank 9');
    await feed.choose({ ranks: [9] });
    expect(feed.window.length).toBe(0);
    client.failure = null;
    await feed.choose({});
    expect(feed.window.length).toBe(10);
    feed.dispose();
  });

  it('pages back to the first line and forward to the last one', async () => {
    const client = new FakeClient(3_000);
    const feed = new LogFeed({
      client,
      runId: 'a',
      window: new LogWindow(1_000)
    });
    await feed.follow();
    feed.pause();
    for (let turn = 0; turn < 6; turn++) {
      await feed.loadBackward();
      expectNoGap(feed);
    }
    expect(shown(feed)[0]).toBe(0);
    expect(feed.window.backward).toBeNull();
    expect(feed.atEnd).toBe(false);
    expect(client.handler).toBeNull();
    client.size = 3_100;
    for (let turn = 0; turn < 8; turn++) {
      await feed.loadForward();
      expectNoGap(feed);
    }
    expect(feed.atEnd).toBe(true);
    expect(shown(feed)[feed.window.length - 1]).toBe(3_099);
    expect(client.follows).toMatchObject([
      { cursor: '3000' },
      { cursor: '3100' }
    ]);
    feed.dispose();
  });

  it('leaves new lines on the server while somebody reads old ones', async () => {
    const client = new FakeClient(500);
    const feed = new LogFeed({
      client,
      runId: 'a',
      window: new LogWindow(1_000)
    });
    await feed.follow();
    feed.pause();
    client.grow(450);
    await drawn();
    expect(client.handler).toBeNull();
    expect(shown(feed)[0]).toBe(0);
    client.size = 2_000;
    await feed.follow();
    expect(shown(feed)[feed.window.length - 1]).toBe(1_999);
    feed.dispose();
  });

  it('tells that the first lines came', async () => {
    const client = new FakeClient(0);
    const feed = new LogFeed({ client, runId: 'a' });
    await feed.follow();
    const told: number[] = [];
    feed.stateChanged.connect(() => told.push(feed.window.length));
    client.grow(10);
    await drawn();
    client.grow(10);
    await drawn();
    expect(told).toEqual([10]);
    feed.dispose();
  });

  it('asks for nothing while it is suspended', async () => {
    const client = new FakeClient(100);
    const feed = new LogFeed({ client, runId: 'a' });
    await feed.follow();
    feed.suspend();
    expect(client.handler).toBeNull();
    client.size = 10_000;
    await feed.resume();
    // Who follows wants the end, not all that was missed.
    expect(shown(feed)[0]).toBe(9_500);
    expect(client.handler).not.toBeNull();
    feed.pause();
    feed.suspend();
    await feed.resume();
    // Who reads goes on where it stood.
    expect(client.follows[2].cursor).toBe('10000');
    client.grow(10);
    await drawn();
    expectNoGap(feed);
    expect(shown(feed)[feed.window.length - 1]).toBe(10_009);
    feed.dispose();
  });

  it('starts anew with other ranks', async () => {
    const client = new FakeClient(10);
    const feed = new LogFeed({ client, runId: 'a' });
    await feed.follow();
    const { handler } = client;
    await feed.choose({ ranks: [3] });
    expect(client.follows[1].request).toEqual({ runId: 'a', ranks: [3] });
    // What still comes for the old choice is not shown.
    handler?.frame(frame('x', block(['old'])), () => undefined);
    await drawn();
    expect(feed.window.length).toBe(10);
    feed.dispose();
  });

  it('does not go on from an old window while a new one is on its way', async () => {
    const client = new FakeClient(3_000);
    const feed = new LogFeed({ client, runId: 'a' });
    await feed.follow();
    const going = feed.goTo('100');
    await feed.loadForward();
    await going;
    expect(shown(feed)).toContain(100);
    expect(shown(feed)).not.toContain(2_999);
    expectNoGap(feed);
    expect(feed.ended).toBe(false);
    feed.dispose();
  });

  it('says why nothing comes, and tries again', async () => {
    const client = new FakeClient(10);
    client.failure = ApiError.local('network', 'down');
    const feed = new LogFeed({ client, runId: 'a' });
    await feed.follow();
    expect(feed.error?.code).toBe('network');
    client.failure = null;
    await feed.follow();
    expect(feed.error).toBeNull();
    client.handler?.error(ApiError.local('not_found', 'gone'));
    expect(feed.error?.code).toBe('not_found');
    feed.dispose();
  });

  it('knows when the run has ended', async () => {
    const client = new FakeClient(10);
    const feed = new LogFeed({ client, runId: 'a' });
    await feed.follow();
    client.grow(5);
    client.handler?.end();
    expect(feed.ended).toBe(true);
    expect(feed.window.length).toBe(15);
    feed.dispose();
  });
});

describe('LogFeed at the start', () => {
  it('reads the first page from the beginning, and on from there', async () => {
    const client = new FakeClient(3_000);
    const feed = new LogFeed({ client, runId: 'a' });
    await feed.follow();
    client.handler?.end();
    expect([feed.over, feed.window.atStart]).toEqual([true, false]);
    expect(await feed.toStart()).toBe(true);
    expect(client.pages[1]).toMatchObject({ direction: 'forward' });
    expect(client.pages[1].cursor).toBeUndefined();
    expect(shown(feed)[0]).toBe(0);
    expect([feed.over, feed.following, feed.atEnd]).toEqual([
      true,
      false,
      false
    ]);
    await feed.loadForward();
    expect(shown(feed)).toHaveLength(1_000);
    expectNoGap(feed);
    await feed.follow();
    expect(shown(feed)[499]).toBe(2_999);
    feed.dispose();
  });

  it('says that a page cannot be read only until one can', async () => {
    const client = new FakeClient(2_000);
    const feed = new LogFeed({ client, runId: 'a' });
    await feed.follow();
    client.failure = ApiError.local('network', 'down');
    await feed.loadBackward();
    expect(feed.error?.message).toBe('down');
    const told = jest.fn();
    feed.stateChanged.connect(told);
    client.failure = null;
    await feed.loadBackward();
    expect(feed.error).toBeNull();
    expect(told).toHaveBeenCalledTimes(1);
    expect(client.handler).not.toBeNull();
    feed.dispose();
  });

  it('asks for nothing when it is there', async () => {
    const client = new FakeClient(10);
    const feed = new LogFeed({ client, runId: 'a' });
    await feed.follow();
    client.handler?.end();
    await feed.toStart();
    expect(client.pages).toHaveLength(1);
    expect([feed.following, feed.ended]).toEqual([false, true]);
    feed.dispose();
  });
});

describe('LogFeed of a run that is requeued', () => {
  it('goes on where it stopped', async () => {
    const client = new FakeClient(10);
    const feed = new LogFeed({ client, runId: 'a' });
    await feed.follow();
    client.handler?.end();
    feed.reopen();
    expect(feed.ended).toBe(false);
    expect(client.follows[1].cursor).toBe('10');
    client.grow(5);
    await drawn();
    expect(feed.window.length).toBe(15);
    expectNoGap(feed);
    feed.dispose();
  });

  it('goes on once it is looked at again', async () => {
    const client = new FakeClient(10);
    const feed = new LogFeed({ client, runId: 'a' });
    await feed.follow();
    client.handler?.end();
    feed.suspend();
    feed.reopen();
    expect([feed.over, client.follows.length]).toEqual([false, 1]);
    client.size = 20;
    await feed.resume();
    expect(shown(feed)).toHaveLength(20);
    expect(client.follows[1].cursor).toBe('20');
    feed.dispose();
  });
});

describe('LogSearch', () => {
  it('finds lines far away and steps through them', async () => {
    const client = new FakeClient(5_000);
    const feed = new LogFeed({ client, runId: 'a' });
    const search = new LogSearch(client, feed);
    await feed.follow();
    const rows: number[] = [];
    feed.revealed.connect((_, row) =>
      rows.push(Number(feed.window.row(row)?.text))
    );
    await search.find('234');
    expect(search.current?.line).toBe('234');
    await search.forward();
    await search.forward();
    expect(rows).toEqual([234, 1234, 2234 + 0]);
    await search.backward();
    expect(rows[3]).toBe(1234);
    expect(search.more).toBe(true);
    expect(feed.following).toBe(false);
    search.dispose();
    feed.dispose();
  });

  it('says when there is none', async () => {
    const client = new FakeClient(5_000);
    const feed = new LogFeed({ client, runId: 'a' });
    const search = new LogSearch(client, feed);
    await search.find('nothing');
    expect(search.hits).toHaveLength(0);
    expect(search.more).toBe(false);
    expect(search.busy).toBe(false);
    search.dispose();
    feed.dispose();
  });
});
