import { nullTranslator } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { IRunMlflow, MlflowSection } from '../section';

const trans = nullTranslator.load('hyperpod_jlab');

const URI = 'arn:aws:sagemaker:us-west-2:111122223333:mlflow-app/app-A';

describe('MlflowSection', () => {
  let answers: IRunMlflow[];
  let opened: number;
  let widget: Widget;

  async function show(...parts: object[]): Promise<void> {
    answers = parts.map(one => answerOf('RunMlflow', one));
    const asked = jest.fn(() =>
      Promise.resolve(answers.shift() ?? answerOf('RunMlflow'))
    );
    widget = ReactWidget.create(
      React.createElement(MlflowSection, {
        load: asked,
        open: () => opened++,
        trans
      })
    );
    Widget.attach(widget, document.body);
    await until(() => asked.mock.calls.length > 0);
    await asked.mock.results[0].value;
  }

  const text = () => widget.node.textContent ?? '';

  function click(label: string): void {
    const buttons = Array.from(widget.node.querySelectorAll('button'));
    buttons.find(one => one.textContent === label)?.click();
  }

  beforeEach(() => {
    opened = 0;
  });

  afterEach(() => {
    widget.dispose();
  });

  it('is not there for a run without a tracking server', async () => {
    await show({ tracking_uri: null });
    expect(text()).toBe('');
  });

  it('links to the run and shows parameters and last metrics', async () => {
    const metrics = {
      loss: { value: 0.25, step: 3, time: 0 },
      bad: { value: null, step: 3, time: 0 }
    };
    const mlflow = {
      name: 'toy',
      url: null,
      status: 'FINISHED',
      params: { lr: '0.1' },
      metrics
    };
    await show({ tracking_uri: URI, mlflow });
    await until(() => text() !== '');
    expect(text()).toContain('Parameterslr0.1Metricsloss0.25badNaN');
    expect(text()).toContain('Open toy in MLflow (finished)');
    click('Open toy in MLflow');
    expect(opened).toBe(1);
  });

  it('says why MLflow does not answer, and asks again', async () => {
    await show(
      { tracking_uri: URI, mlflow: null, problem: 'MLflow denies access' },
      { tracking_uri: URI, mlflow: null, problem: null }
    );
    await until(() => text().includes('MLflow denies access'));
    click('Refresh');
    await until(() => text().includes('No run in MLflow.'));
  });
});
