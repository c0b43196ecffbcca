import { nullTranslator } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import { until } from '../../__tests__/until';
import { Attempts } from '../attempts';
import { run } from './fakes';

const trans = nullTranslator.load('hyperpod_jlab');

let widget: Widget;

/** The page's part with these attempts, under a heading that is always there. */
async function shown(attempts: unknown[]): Promise<HTMLElement> {
  const props = { run: run(1, { attempts }), trans };
  widget = ReactWidget.create(
    React.createElement(
      'div',
      null,
      React.createElement('h1'),
      React.createElement(Attempts, props)
    )
  );
  Widget.attach(widget, document.body);
  await until(() => widget.node.querySelector('h1') !== null);
  return widget.node;
}

function attempt(number: number, parts: Record<string, unknown> = {}) {
  return { number, state: 'running', nodes: ['node1'], ...parts };
}

describe('Attempts', () => {
  afterEach(() => widget.dispose());

  it('says nothing of a run with one', async () => {
    expect((await shown([attempt(1)])).textContent).toBe('');
  });

  it('tells how each ended and why', async () => {
    const first = attempt(1, {
      state: 'failed',
      reason: 'it was requeued',
      exit_code: 143,
      started_at: '2026-01-01T00:00:00.000Z',
      ended_at: '2026-01-01T00:01:01.000Z'
    });
    const page = await shown([first, attempt(2)]);
    expect(page.querySelector('summary')?.textContent).toBe('2 attempts');
    const cells = Array.from(
      page.querySelectorAll('tbody tr:first-child td')
    ).map(cell => cell.textContent);
    expect(cells.slice(0, 4)).toEqual([
      '1',
      'failed',
      'it was requeued',
      '143'
    ]);
    expect(cells.slice(5)).toEqual(['1 min 1 s', 'node1']);
    const last = page.querySelectorAll('tbody tr:last-child td');
    expect(last[5].textContent).toBe('');
  });

  it('shows the newest of many', async () => {
    const many = Array.from({ length: 250 }, (_, at) => attempt(at + 1));
    const rows = (await shown(many)).querySelectorAll('tbody tr');
    expect(rows).toHaveLength(200);
    expect(rows[0].querySelector('td')?.textContent).toBe('51');
  });
});
