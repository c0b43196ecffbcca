import { Dialog } from '@jupyterlab/apputils';
import { NotebookWidgetFactory } from '@jupyterlab/notebook';
import { nullTranslator } from '@jupyterlab/translation';

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

  it.each([
    ['bob', false, 'reject', false],
    ['bob', false, 'accept', true],
    ['ana', true, null, true]
  ])(
    'asks before scripts of a run of %s (own: %s), here with %s',
    async (user, own, answer, expected) => {
      const model = new ExecutedNotebookModel(
        { notebook: jest.fn() },
        'one',
        {} as NotebookWidgetFactory
      );
      const changed = jest.fn();
      model.changed.connect(changed);
      const trans = nullTranslator.load('');
      const done = model.trust({ own, user }, trans);
      if (answer !== null) {
        await until(() => document.querySelector('.jp-Dialog') !== null);
        const text = document.querySelector('.jp-Dialog')?.textContent;
        expect(text).toContain('This run belongs to bob.');
        document.querySelector<HTMLElement>(`.jp-mod-${answer}`)?.click();
      }
      await done;
      expect(changed.mock.calls.length > 0).toBe(expected);
      Dialog.flush();
      await until(() => document.querySelector('.jp-Dialog') === null);
      model.dispose();
    }
  );
});
