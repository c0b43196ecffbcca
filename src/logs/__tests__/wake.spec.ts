import { WakeDetector } from '../wake';

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

describe('WakeDetector', () => {
  it('tells of sleep, not of a hidden page', () => {
    const awake = jest.fn();
    const detector = new WakeDetector(awake);
    jest.advanceTimersByTime(3_600_000);
    expect(awake).not.toHaveBeenCalled();
    // A hidden page's timers run once a minute.
    jest.setSystemTime(Date.now() + 60_000);
    jest.advanceTimersByTime(15_000);
    expect(awake).not.toHaveBeenCalled();
    // A lid that was closed for an hour.
    jest.setSystemTime(Date.now() + 3_600_000);
    jest.advanceTimersByTime(15_000);
    expect(awake).toHaveBeenCalledTimes(1);
    detector.dispose();
  });

  it('tells that the network is back, until it is disposed of', () => {
    const awake = jest.fn();
    const detector = new WakeDetector(awake);
    window.dispatchEvent(new Event('online'));
    expect(awake).toHaveBeenCalledTimes(1);
    detector.dispose();
    window.dispatchEvent(new Event('online'));
    expect(awake).toHaveBeenCalledTimes(1);
  });
});
