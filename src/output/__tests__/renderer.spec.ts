import type { IRenderMime } from '@jupyterlab/rendermime';
import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { MIME_TYPE } from '../data';
import { RunOutput } from '../renderer';
import type { RunCard } from '../runCard';

const trans = nullTranslator.load('hyperpod_jlab');

function model(data: unknown, trusted: boolean): IRenderMime.IMimeModel {
  return {
    trusted,
    data: { [MIME_TYPE]: data },
    metadata: {},
    setData: () => undefined
  } as unknown as IRenderMime.IMimeModel;
}

function output() {
  const made: string[] = [];
  const widget = new RunOutput({
    trans,
    makeCard: runId => {
      made.push(runId);
      return Promise.resolve(new Widget() as RunCard);
    }
  });
  Widget.attach(widget, document.body);
  return { made, widget };
}

async function rendered(): Promise<void> {
  await new Promise(resolve => setTimeout(resolve, 20));
}

const RUN = { version: 1, run_id: 'run-1', name: 'train' };

describe('an output that is a run', () => {
  it('is live where the notebook is trusted, and stays when it is shown again', async () => {
    const { made, widget } = output();
    await widget.renderModel(model(RUN, true));
    await widget.renderModel(model(RUN, true));
    expect(made).toEqual(['run-1']);
    expect(widget.widgets).toHaveLength(1);
    widget.dispose();
  });

  it('waits for a click where it is not', async () => {
    const { made, widget } = output();
    await widget.renderModel(model(RUN, false));
    await rendered();
    expect(made).toEqual([]);
    // The name is a stranger's word; only the id is shown.
    expect(widget.node.textContent).not.toContain('train');
    widget.node.querySelector('button')?.click();
    await rendered();
    expect(made).toEqual(['run-1']);
    widget.dispose();
  });

  it('says in words that it names no run', async () => {
    const { made, widget } = output();
    await widget.renderModel(model({ version: 1 }, true));
    await rendered();
    expect(made).toEqual([]);
    expect(widget.node.textContent).toContain('does not name a run');
    expect(widget.node.querySelector('button')).toBeNull();
    widget.dispose();
  });

  it('becomes another when it gets other data', async () => {
    const { made, widget } = output();
    await widget.renderModel(model(RUN, true));
    await widget.renderModel(model({ ...RUN, run_id: 'run-2' }, true));
    expect(made).toEqual(['run-1', 'run-2']);
    expect(widget.widgets).toHaveLength(1);
    widget.dispose();
  });
});
