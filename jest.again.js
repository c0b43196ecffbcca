// As with pytest (scripts/test.sh): a test that fails is tried once more, and its first failure is printed. It is a fault to look for.
jest.retryTimes(1, { logErrorsBeforeRetry: true });
