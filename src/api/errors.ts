/**
 * Errors of the server extension, in the one shape that all faces of hyperpod_jlab share.
 */

/**
 * What the server sends as the body of an error.
 */
export interface IErrorBody {
  /** A stable word for programs, such as `not_found`. */
  code: string;
  /** One sentence that says what is wrong. */
  message: string;
  /** What to do about it, if the server knows. */
  hint: string | null;
  /** Further plain data, such as the field that is wrong. */
  detail: Readonly<Record<string, unknown>>;
}

/** No answer came: the server is down, the network is gone. */
export const NETWORK_ERROR = 'network';

/** No answer came in time. */
export const TIMEOUT_ERROR = 'timeout';

/** An answer came that is not what this client understands. */
export const BAD_ANSWER_ERROR = 'bad_answer';

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

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}
