import { NotebookWidgetFactory } from '@jupyterlab/notebook';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { ExecutedNotebookModel } from '../notebookTab';

describe('ExecutedNotebookModel', () => {
  it('reads another rank of a run that has ended', async () => {
    const notebook = jest.fn((_: string, rank: number) =>
      Promise.resolve(
        answerOf('ExecutedNotebook', {
          run_id: 'one',
          name: 'a.ipynb',
          rank,
          attempt: 1,
          ended: true,
          document: {}
        })
      )
    );
    const factory = {} as NotebookWidgetFactory;
    const model = new ExecutedNotebookModel({ notebook }, 'one', factory);
    model.start();
    await until(() => model.value?.rank === 0);
    model.rank = 3;
    expect(model.value).toBeNull();
    await until(() => model.value?.rank === 3);
    expect(notebook).toHaveBeenCalledTimes(2);
    model.dispose();
  });
});
