import { ApiError, NETWORK_ERROR, TIMEOUT_ERROR } from '..';

describe('ApiError', () => {
  it('keeps what is one, and makes one of anything else', () => {
    const error = ApiError.local('x', 'y');
    expect(ApiError.of(error)).toBe(error);
    expect(ApiError.of(new Error('broken')).message).toContain('broken');
  });

  it.each([
    ['isOffline', NETWORK_ERROR, null],
    ['isUnanswered', TIMEOUT_ERROR, null],
    ['isUnanswered', 'http_503', 503],
    ['isMissing', 'no_such_run', 404],
    ['isNotFound', 'no_such_run', 404],
    ['isForeign', 'http_404', 404],
    ['isRefused', 'invalid_spec', 422]
  ] as const)('says %s of %s', (rule, code, status) => {
    expect(ApiError.local(code, '', status)[rule]).toBe(true);
  });

  it.each([
    ['isUnanswered', 'invalid_spec', 422],
    ['isMissing', 'http_404', 404],
    ['isNotFound', 'http_404', 404],
    ['isRefused', 'internal', 500],
    ['isRefused', NETWORK_ERROR, null]
  ] as const)('does not say %s of %s', (rule, code, status) => {
    expect(ApiError.local(code, '', status)[rule]).toBe(false);
  });
});
