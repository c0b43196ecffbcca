import type { Schema } from './schema';

/**
 * Errors of the server extension, in the one shape that all faces of hyperpod_jlab share.
 */

/**
 * What the server sends as the body of an error: a stable word for programs, a sentence, what to do about it if the
 * server knows, and further plain data, such as the field that is wrong.
 */
export type IErrorBody = Schema<'Error'>;

/** No answer came: the server is down, the network is gone. */
export const NETWORK_ERROR = 'network';

/** No answer came in time. */
export const TIMEOUT_ERROR = 'timeout';

/** An answer came that is not what this client understands. */
export const BAD_ANSWER_ERROR = 'bad_answer';

/** What the server says of a run or cluster that is not there. */
const MISSING = ['not_found', 'no_such_run'];

/** Statuses of a gateway that could not reach the server, or lost its answer. */
const GATEWAY = [502, 503, 504];

/**
 * Every failure of a request: refused by the server, not answered, or not understood.
 */
export class ApiError extends Error {
  /**
   * @param body - what is wrong
   * @param status - the HTTP status, or null when no answer came
   */
  constructor(body: IErrorBody, status: number | null) {
    super(body.message);
    this.name = 'ApiError';
    this.code = body.code;
    this.hint = body.hint;
    this.detail = body.detail;
    this.status = status;
  }

  readonly code: string;
  readonly hint: string | null;
  readonly detail: Readonly<Record<string, unknown>>;
  readonly status: number | null;

  /** No answer came: the server is down, or the network. */
  get isOffline(): boolean {
    return this.code === NETWORK_ERROR;
  }

  /** There is no such run or cluster. */
  get isMissing(): boolean {
    return MISSING.includes(this.code);
  }

  /** The server itself, not a proxy, says that something is not there. */
  get isNotFound(): boolean {
    return this.status === 404 && !this.isForeign;
  }

  /** There is no such address: the server has no extension of ours. */
  get isForeign(): boolean {
    return this.code === 'http_404';
  }

  /** It is unknown what became of the request, and asking again may help. */
  get isUnanswered(): boolean {
    return (
      this.isOffline ||
      this.code === TIMEOUT_ERROR ||
      GATEWAY.includes(this.status ?? 0)
    );
  }

  /** The server said no, and did nothing. */
  get isRefused(): boolean {
    return this.status !== null && this.status >= 400 && this.status < 500;
  }

  /**
   * Whatever was thrown, as an error of this kind.
   */
  static of(reason: unknown): ApiError {
    return reason instanceof ApiError
      ? reason
      : ApiError.local(NETWORK_ERROR, String(reason));
  }

  /**
   * An error that arose on this side, without a word of the server.
   */
  static local(
    code: string,
    message: string,
    status: number | null = null
  ): ApiError {
    return new ApiError({ code, message, hint: null, detail: {} }, status);
  }

  /**
   * The error that an answer carries.
   *
   * Proxies and older servers answer in other shapes (or in HTML), so every part may be missing.
   */
  static fromAnswer(
    status: number,
    statusText: string,
    text: string
  ): ApiError {
    const body = parseObject(text);
    return new ApiError(
      {
        code: asString(body.code) ?? `http_${status}`,
        message: asString(body.message) ?? (statusText || `HTTP ${status}`),
        hint: asString(body.hint),
        detail: isRecord(body.detail) ? body.detail : {}
      },
      status
    );
  }
}

/**
 * Whether a value is a plain object (and neither null nor a list).
 */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function asString(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

function parseObject(text: string): Partial<Record<keyof IErrorBody, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}
