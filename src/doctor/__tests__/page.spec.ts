import { Event } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { IDoctorClient } from '../client';
import { DoctorModel } from '../model';
import { DoctorPage } from '../page';

const check = (key: string, stage: string, group: string, level: string) => ({
  key,
  stage,
  group,
  level,
  name: key,
  title: key,
  evidence: `what ${key} shows`,
  about: key === 'cluster' ? 'ml' : null,
  fix: level === 'ok' ? null : `mend ${key}`,
  who: level === 'ok' ? null : 'you'
});

const stage = (
  name: string,
  level: string | null,
  checks: number,
  problems: number,
  broken = false
) => ({ stage: name, level, checks, problems, broken });

const FOUND = {
  number: 1,
  version: 3,
  state: 'done',
  begun_at: '2026-11-22T17:00:00Z',
  ended_at: '2026-11-22T17:00:04Z',
  checks: [
    check('versions', 'jupyterlab', 'installation', 'ok'),
    check('config-files', 'jupyterlab', 'installation', 'warn'),
    check('role', 'aws', 'role', 'ok'),
    check('security-groups', 'network', 'security-groups', 'fail'),
    check('cluster', 'scheduler', 'scheduler', 'ok')
  ],
  stages: [
    stage('jupyterlab', 'warn', 2, 1),
    stage('aws', 'ok', 1, 0),
    stage('network', 'fail', 1, 1, true),
    stage('file-system', null, 0, 0),
    stage('scheduler', 'ok', 1, 0),
    stage('nodes', null, 0, 0)
  ]
};

describe('DoctorPage', () => {
  let page: DoctorPage;

  beforeEach(async () => {
    const read = () => Promise.resolve(answerOf('DoctorExamination', FOUND));
    const client: IDoctorClient = {
      read,
      begin: read,
      cancel: read,
      report: () => Promise.resolve({ name: 'r.md', text: '' })
    };
    const events = new Signal<object, Event.Emission>({});
    page = new DoctorPage({
      model: new DoctorModel(client, events, 20),
      copy: () => undefined,
      clusters: () => Promise.resolve(['local', 'ml']),
      copyReport: () => undefined,
      saveReport: () => undefined,
      trans: nullTranslator.load('hyperpod_jlab')
    });
    Widget.attach(page, document.body);
    await until(() => items().length > 0);
  });

  afterEach(() => page.dispose());

  const all = (selector: string) => [
    ...page.node.querySelectorAll<HTMLElement>(selector)
  ];
  const items = () =>
    all('.jp-HyperPod-Doctor-checks > li').map(
      one => one.querySelector('strong')?.textContent
    );
  const stop = (name: string) =>
    all('.jp-HyperPod-Doctor-path button').find(one =>
      one.textContent?.includes(name)
    );

  it('shows the path in order, and where it breaks', () => {
    const stops = all('.jp-HyperPod-Doctor-path li');
    expect(stops.map(one => one.dataset.level)).toEqual([
      'warn',
      'ok',
      'fail',
      'none',
      'ok',
      'none'
    ]);
    const broken = stops.filter(one => one.dataset.broken === 'true');
    expect(broken).toHaveLength(1);
    expect(broken[0].textContent).toContain('Breaks here');
    // The level is told by a word, too, not by colour and shape alone.
    expect(
      stop('Network')?.querySelector('[aria-label="failed"]')
    ).toBeTruthy();
    expect(stop('Nodes')?.textContent).toContain('Not tested');
  });

  it('shows problems first, the worst on top, and folds what is ok', () => {
    expect(page.node.textContent).toContain('5 checks: 1 failed, 1 warning');
    expect(items().slice(0, 2)).toEqual(['security-groups', 'config-files']);
    const [well] = all('details');
    expect(well.hasAttribute('open')).toBe(false);
    expect(well.querySelector('summary')?.textContent).toBe('3 checks OK');
  });

  it('leaves out what is ok when only problems are wanted', async () => {
    all('input[type=checkbox]')[0].click();
    await until(() => items().length === 2);
    expect(all('details')).toEqual([]);
  });

  it('shows the checks of a stage, opened, and all again', async () => {
    stop('AWS role')?.click();
    await until(() => items().length === 1);
    expect(items()).toEqual(['role']);
    expect(all('details')[0].hasAttribute('open')).toBe(true);
    expect(stop('AWS role')?.getAttribute('aria-pressed')).toBe('true');
    stop('AWS role')?.click();
    await until(() => items().length === 5);
  });

  it('leads from the untested nodes to the test job', () => {
    Element.prototype.scrollIntoView = () => undefined;
    stop('Nodes')?.click();
    expect(document.activeElement?.tagName).toBe('SELECT');
    expect(items()).toHaveLength(5);
  });
});
