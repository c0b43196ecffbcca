import { ServerConnection } from '@jupyterlab/services';

import { ApiError, fetchVersion, HyperPodClient } from '..';

interface ICall {
  url: string;
  method: string;
  body: string | null;
}

/**
 * A client on a server of our own, and the calls that reached it.
 */
function clientOf(
  answer: (call: ICall, signal: AbortSignal) => Response | Promise<Response>
): { client: HyperPodClient; calls: ICall[] } {
  const calls: ICall[] = [];
  const serverSettings = ServerConnection.makeSettings({
    baseUrl: 'http://localhost/user/me/',
    token: '',
    fetch: async (input: RequestInfo | URL) => {
      const request = input as Request;
      const body = request.method === 'GET' ? null : await request.text();
      const call = { url: request.url, method: request.method, body };
      calls.push(call);
      return answer(call, request.signal);
    }
  });
  return { client: new HyperPodClient(serverSettings), calls };
}

function json(value: unknown, status = 200): Response {
  return new Response(JSON.stringify(value), { status });
}

async function failure(promise: Promise<unknown>): Promise<ApiError> {
  const reason: unknown = await promise.then(
    () => null,
    (error: unknown) => error
  );
  expect(reason).toBeInstanceOf(ApiError);
  return reason as ApiError;
}

describe('HyperPodClient', () => {
  it('asks below the base URL and gives the answer', async () => {
    const { client, calls } = clientOf(() =>
      json({ version: '1.2.3', api: 1 })
    );
    expect(await fetchVersion(client)).toEqual({ version: '1.2.3', api: 1 });
    expect(calls[0].method).toBe('GET');
    expect(calls[0].url).toMatch(
      /^http:\/\/localhost\/user\/me\/hyperpod\/api\/v1\/version(\?|$)/
    );
  });

  it('sends the given query parameters only', async () => {
    const { client, calls } = clientOf(() => json({}));
    const query = {
      ...{ state: ['running', 'failed'], limit: 5, refresh: true },
      ...{ cursor: undefined, sort: null, filter: 'a&b' }
    };
    await client.get('runs', { query });
    expect(calls[0].url).toContain(
      '/runs?state=running%2Cfailed&limit=5&refresh=true&filter=a%26b'
    );
  });

  it('posts JSON', async () => {
    const { client, calls } = clientOf(() => json({ run_id: 'r1' }));
    await client.post('runs', { cluster: 'local' });
    expect(calls[0]).toMatchObject({
      method: 'POST',
      body: '{"cluster":"local"}'
    });
  });

  it('keeps code, message, hint and detail of an error', async () => {
    const body = {
      code: 'invalid_input',
      message: 'nodes must be positive',
      hint: 'use 1 or more',
      detail: { field: 'resources.nodes' }
    };
    const { client } = clientOf(() => json(body, 400));
    const error = await failure(client.get('runs'));
    expect(error).toMatchObject({ ...body, status: 400 });
  });

  it('makes the best of an error in another shape', async () => {
    const { client } = clientOf(
      () => new Response('<html>', { status: 502, statusText: 'Bad Gateway' })
    );
    const error = await failure(client.get('runs'));
    expect(error).toMatchObject({
      code: 'http_502',
      message: 'Bad Gateway',
      hint: null,
      status: 502
    });
  });

  it('tells an answer it does not understand', async () => {
    const { client } = clientOf(() => new Response('<html>'));
    const error = await failure(fetchVersion(client));
    expect(error).toMatchObject({ code: 'bad_answer', status: 200 });
  });

  it('tells a server that is not there', async () => {
    const { client } = clientOf(() => Promise.reject(new TypeError('refused')));
    const error = await failure(client.get('runs'));
    expect(error).toMatchObject({ code: 'network', status: null });
  });

  it('gives up after the timeout', async () => {
    const { client } = clientOf(hang);
    client.timeout = 0.01;
    const error = await failure(client.get('runs'));
    expect(error).toMatchObject({ code: 'timeout', status: null });
  });

  it('ends early when the caller says so', async () => {
    const { client } = clientOf(hang);
    const controller = new AbortController();
    const answer = client.get('runs', { signal: controller.signal });
    controller.abort();
    await expect(answer).rejects.not.toBeInstanceOf(ApiError);
  });
});

/**
 * Never answer; fail when the caller gives up.
 */
function hang(_call: ICall, signal: AbortSignal): Promise<Response> {
  return new Promise((_resolve, reject) => {
    const fail = () => reject(new Error('aborted'));
    if (signal.aborted) {
      fail();
    }
    signal.addEventListener('abort', fail);
  });
}
