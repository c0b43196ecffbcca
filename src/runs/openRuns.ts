import { JupyterFrontEnd } from '@jupyterlab/application';
import { InputDialog, WidgetTracker } from '@jupyterlab/apputils';

import { hyperPodIcon } from '../icons';
import { openPage } from '../shellArea';
import { CommandIDs, IHyperPod } from '../tokens';
import { listActions } from './actions';
import type { IRunsActions, RunsPage } from './runsPage';
import type { IViewStore } from './views';

const PAGE = 'hyperpod-runs';

/** The most characters of a view's name. */
const MAX_NAME = 60;

/**
 * Add the command that shows all runs in a page.
 *
 * @param store - keeps the saved views; null: nothing does
 */
export function addRunsPage(
  app: JupyterFrontEnd,
  hyperPod: IHyperPod,
  store: IViewStore | null
): WidgetTracker<RunsPage> {
  const { trans } = hyperPod;
  const tracker = new WidgetTracker<RunsPage>({ namespace: PAGE });
  app.commands.addCommand(CommandIDs.openRuns, {
    label: trans.__('HyperPod Runs'),
    caption: trans.__('Show all runs in a table'),
    icon: hyperPodIcon,
    describedBy: {
      args: {
        type: 'object',
        properties: {
          unfiltered: {
            type: 'boolean',
            description: 'Whether to clear the filter; default: false'
          }
        },
        // The launcher adds its own.
        additionalProperties: true
      }
    },
    execute: async ({ unfiltered }) => {
      await openPage(app, tracker, PAGE, () => makePage(app, hyperPod, store));
      if (unfiltered === true) {
        tracker.find(page => page.id === PAGE)?.showAll();
      }
      return { page: PAGE };
    }
  });
  return tracker;
}

async function makePage(
  app: JupyterFrontEnd,
  hyperPod: IHyperPod,
  store: IViewStore | null
): Promise<RunsPage> {
  const [{ RunsPage }, { RunsViews }] = await Promise.all([
    import('./runsPage'),
    import('./views')
  ]);
  const { numbers, runs, trans } = hyperPod;
  const views = new RunsViews(store);
  await views.load();
  const page = new RunsPage({
    model: runs,
    numbers,
    views,
    actions: runsActions(app, hyperPod),
    trans
  });
  page.title.label = trans.__('Runs');
  page.title.caption = trans.__('All runs');
  return page;
}

/** What the page does in this application. */
function runsActions(app: JupyterFrontEnd, hyperPod: IHyperPod): IRunsActions {
  const { commands } = app;
  const { trans } = hyperPod;
  const list = listActions(app, hyperPod);
  return {
    openRun: list.openRun,
    cancel: list.cancel,
    remove: list.remove,
    copyId: list.copyId,
    get compare() {
      return list.compare;
    },
    get runAgain() {
      return list.runAgain;
    },
    get newRun() {
      return commands.hasCommand(CommandIDs.newRun)
        ? () => void commands.execute(CommandIDs.newRun)
        : null;
    },
    nameView: async proposal => {
      const taken = trans.__('All Runs');
      let text = proposal;
      let label = trans.__('Name');
      for (;;) {
        const { button, value } = await InputDialog.getText({
          title: trans.__('Save view'),
          label,
          text,
          okLabel: trans.__('Save')
        });
        if (!button.accept) {
          return null;
        }
        text = (value ?? '').trim().slice(0, MAX_NAME);
        if (text !== '' && text !== taken) {
          return text;
        }
        label =
          text === ''
            ? trans.__('Enter a name.')
            : trans.__('“%1” is always there. Enter another name.', taken);
      }
    }
  };
}
