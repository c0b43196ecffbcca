import { noTraining } from '../../runs/__tests__/fakes';
import { SeriesModel } from '../seriesModel';
import { hide } from './hide';

describe('the series of a run', () => {
  let asked: number;
  let model: SeriesModel;

  beforeEach(() => {
    jest.useFakeTimers();
    asked = 0;
    const series = (runId: string, cursor: string | null) => {
      asked += 1;
      return noTraining.series(runId, cursor);
    };
    model = new SeriesModel({ series }, 'a');
  });

  afterEach(() => {
    model.dispose();
    jest.useRealTimers();
  });

  it('are followed while they are seen, and read once where the run has ended', async () => {
    model.start(false);
    await jest.advanceTimersByTimeAsync(1000);
    expect(asked).toBe(1);
    model.start(true);
    await jest.advanceTimersByTimeAsync(450);
    expect(asked).toBe(6);
    model.stop();
    await jest.advanceTimersByTimeAsync(1000);
    expect(asked).toBe(6);
  });

  it('are not asked for while the tab is hidden', async () => {
    model.start(true);
    await jest.advanceTimersByTimeAsync(50);
    hide(true);
    await jest.advanceTimersByTimeAsync(10_000);
    expect(asked).toBe(1);
    hide(false);
    await jest.advanceTimersByTimeAsync(50);
    expect(asked).toBe(2);
    model.stop();
    hide(true);
    model.start(true);
    model.stop();
    hide(false);
    await jest.advanceTimersByTimeAsync(1000);
    expect(asked).toBe(2);
  });
});
