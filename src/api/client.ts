import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import {
  ApiError,
  BAD_ANSWER_ERROR,
  NETWORK_ERROR,
  TIMEOUT_ERROR
} from './errors';

/** Where the server extension's REST API lives under the server's base URL. */
const API_PATH = 'hyperpod/api/v1';

const DEFAULT_TIMEOUT_SECONDS = 30;

type QueryValue = string | number | boolean | readonly string[];

/**
 * Parts of a request beside its path.
 */
export interface IRequestOptions {
  /** Query parameters; those that are null or undefined are left out, the items of a list are joined by commas. */
  query?: Readonly<Record<string, QueryValue | null | undefined>>;
  /** Ends the request early. */
  signal?: AbortSignal;
  /** Seconds to wait for an answer; default: the client's. */
  timeout?: number;
}

/**
 * A typed client of the server extension.
 *
 * It holds the application's own connection settings, never the page's globals, so that it works
 * wherever the application talks to, and is easy to test.
 */
export class HyperPodClient {
  constructor(serverSettings: ServerConnection.ISettings) {
    this._serverSettings = serverSettings;
  }

  /**
   * Seconds to wait for an answer.
   */
  timeout = DEFAULT_TIMEOUT_SECONDS;

  /**
   * Read something.
   */
  get<T>(path: string, options: IRequestOptions = {}): Promise<T> {
    return this._request('GET', path, undefined, options);
  }

  /**
   * Send something, as JSON.
   */
  post<T>(
    path: string,
    body: unknown,
    options: IRequestOptions = {}
  ): Promise<T> {
    return this._request('POST', path, body, options);
  }

  /**
   * Where something is, for links that the browser itself follows, such as downloads.
   */
  link(path: string, query: IRequestOptions['query'] = {}): string {
    const { appendToken, token } = this._serverSettings;
    return this._url(path, {
      ...query,
      token: appendToken && token ? token : undefined
    });
  }

  /**
   * Open a socket.
   */
  socket(path: string): WebSocket {
    const { appendToken, token, wsUrl } = this._serverSettings;
    const url = URLExt.join(wsUrl, API_PATH, path);
    const query =
      appendToken && token ? URLExt.objectToQueryString({ token }) : '';
    return new this._serverSettings.WebSocket(url + query);
  }

  private async _request<T>(
    method: string,
    path: string,
    body: unknown,
    options: IRequestOptions
  ): Promise<T> {
    const controller = new AbortController();
    const abort = () => controller.abort();
    options.signal?.addEventListener('abort', abort);
    const { timeout = this.timeout } = options;
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      controller.abort();
    }, timeout * 1000);
    if (options.signal?.aborted) {
      abort();
    }
    try {
      const response = await ServerConnection.makeRequest(
        this._url(path, options.query),
        {
          method,
          signal: controller.signal,
          ...(body === undefined ? {} : { body: JSON.stringify(body) })
        },
        this._serverSettings
      );
      const text = await response.text();
      if (!response.ok) {
        throw ApiError.fromAnswer(response.status, response.statusText, text);
      }
      return parsed<T>(text, response.status);
    } catch (reason) {
      if (timedOut) {
        throw ApiError.local(TIMEOUT_ERROR, `No answer within ${timeout} s`);
      }
      if (reason instanceof ApiError || options.signal?.aborted) {
        throw reason;
      }
      throw ApiError.local(NETWORK_ERROR, String(reason));
    } finally {
      clearTimeout(timer);
      options.signal?.removeEventListener('abort', abort);
    }
  }

  private _url(path: string, query: IRequestOptions['query'] = {}): string {
    const url = URLExt.join(this._serverSettings.baseUrl, API_PATH, path);
    const given: Record<string, string> = {};
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== null) {
        given[name] = String(value);
      }
    }
    return url + URLExt.objectToQueryString(given);
  }

  private readonly _serverSettings: ServerConnection.ISettings;
}

/** The answer, of which the server says that it is a `T`. */
function parsed<T>(text: string, status: number): T {
  try {
    return JSON.parse(text) as T;
  } catch (reason) {
    throw ApiError.local(BAD_ANSWER_ERROR, String(reason), status);
  }
}
