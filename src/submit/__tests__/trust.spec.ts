import { ApiError } from '../../api';
import { until } from '../../__tests__/until';
import { SubmitDialog } from '../dialog';
import { SubmitModel } from '../model';
import { fileSource } from '../source';
import { IFinding } from '../types';
import { FakeServer, formOn, previewOf, settled, trans } from './fakes';

const FOREIGN: IFinding = {
  level: 'error',
  code: 'foreign_code',
  message: 'old-1 is a run of bob, another user',
  hint: 'confirm with --trust-owner bob',
  field: 'trust_owner',
  fixes: []
};

const QUESTION =
  'This run belongs to bob. Its code would run with your permissions. Review it under “Code” on the run page first.';

const SOURCE = {
  ...fileSource('', { kind: 'notebook', path: 'train.ipynb' }),
  path: null,
  cloneOf: 'old-1',
  owner: 'bob'
};

/** A server on which old-1 is a run of bob. */
class ServerOfBob extends FakeServer {
  /** What it finds once the code may run. */
  findings: readonly Partial<IFinding>[] = [];

  override answerPreview = () =>
    Promise.resolve(
      previewOf(
        this.previews[this.previews.length - 1].trust_owner === 'bob'
          ? this.findings
          : [FOREIGN]
      )
    );
}

describe('the submit dialog of another user’s run', () => {
  let server: ServerOfBob;
  let model: SubmitModel;
  let dialog: SubmitDialog;
  let closed: Promise<unknown>;

  beforeEach(async () => {
    Object.assign(window, { CSS: { escape: (text: string) => text } });
    server = new ServerOfBob();
    model = await formOn(server, {
      source: SOURCE,
      start: { cluster: null, spec: {} }
    });
    dialog = new SubmitDialog(model, trans);
    closed = dialog.launch();
    // The dialog puts the focus on a field once, when it is drawn.
    await until(
      () =>
        box() !== null &&
        document.activeElement?.getAttribute('data-field') === 'resources.nodes'
    );
  });

  afterEach(() => {
    if (!dialog.isDisposed) {
      dialog.reject();
    }
  });

  function box(): HTMLInputElement | null {
    return dialog.node.querySelector('[data-trust]');
  }

  function send(): HTMLButtonElement {
    const found = dialog.node.querySelector<HTMLButtonElement>(
      '.jp-Dialog-button.jp-mod-accept'
    );
    if (found === null) {
      throw new Error('there is no button that submits');
    }
    return found;
  }

  function foundText(): string {
    return dialog.node.querySelector('[data-findings]')?.textContent ?? '';
  }

  function stateText(): string {
    return (
      dialog.node.querySelector('.jp-HyperPod-StatusLine-state')?.textContent ??
      ''
    );
  }

  function ctrlEnter(): void {
    dialog.node.dispatchEvent(
      new KeyboardEvent('keydown', { key: 'Enter', ctrlKey: true })
    );
  }

  it('asks once whose code may run, in words that are read out and labelled', () => {
    const alert = dialog.node.querySelector('[role=alert]');
    expect(alert?.textContent).toBe(QUESTION);
    expect(box()?.labels?.[0].textContent).toBe(
      'Run bob’s code with my permissions'
    );
    expect(box()?.getAttribute('aria-describedby')).toBe(alert?.id);
    expect(dialog.node.textContent).not.toContain(FOREIGN.message);
    expect(stateText()).toContain(
      'The cluster checks the run after you confirm.'
    );
  });

  it('sends nothing before that is confirmed, and goes to the question', async () => {
    expect(send().disabled).toBe(true);
    ctrlEnter();
    await until(() => document.activeElement === box());
    expect(server.submits).toEqual([]);
    expect(server.previews.map(body => body.trust_owner)).toEqual([undefined]);
  });

  it('names the owner to preview and submit once that is confirmed', async () => {
    server.findings = [{ level: 'warning', code: 'x', message: 'old torch' }];
    box()?.click();
    await until(() => foundText().includes('Old torch'));
    expect(server.previews[1]).toMatchObject({
      clone_of: 'old-1',
      trust_owner: 'bob'
    });
    expect(send().disabled).toBe(false);
    send().click();
    await closed;
    expect(server.submits).toHaveLength(1);
    expect(server.submits[0]).toMatchObject({ trust_owner: 'bob' });
  });

  it('takes the confirmation back', async () => {
    box()?.click();
    await until(() => stateText().includes('Ready to submit'));
    box()?.click();
    await until(() => server.previews.length === 3);
    await settled(model);
    expect(server.previews[2].trust_owner).toBeUndefined();
    expect(send().disabled).toBe(true);
    expect(await model.submit()).toBeNull();
    expect(server.submits).toEqual([]);
  });

  it('asks on while fields are wrong, for which there is no new preview', async () => {
    model.set({ 'resources.nodes': 'many' });
    await until(() => stateText().includes('Fix 1 field'));
    expect(model.isStale).toBe(true);
    expect(box()?.checked).toBe(false);
    expect(send().disabled).toBe(true);
  });

  it('shows what the server says when the confirmation does not help', async () => {
    server.findings = [FOREIGN];
    box()?.click();
    await until(() => foundText().includes(FOREIGN.message));
    expect(foundText()).toContain(
      'Review it under “Code” on the run page, then confirm that it may run.'
    );
  });
});

describe('the form of a run that is sent once more', () => {
  it('asks when only the refusal says that it is another user’s', async () => {
    const server = new FakeServer();
    server.answerSubmit = () =>
      Promise.reject(
        new ApiError(
          {
            code: FOREIGN.code,
            message: FOREIGN.message,
            hint: FOREIGN.hint,
            detail: { findings: [FOREIGN] }
          },
          409
        )
      );
    const model = await formOn(server, { source: SOURCE });
    expect(model.foreignOwner).toBeNull();
    expect(await model.submit()).toBeNull();
    expect(model.isDistrusted).toBe(true);
    expect(model.foreignOwner).toBe('bob');
  });

  it('asks nothing of one’s own run, and names nobody', async () => {
    const server = new FakeServer();
    const model = await formOn(server, { source: SOURCE });
    expect(model.foreignOwner).toBeNull();
    expect(await model.submit()).not.toBeNull();
    expect(server.submits[0].trust_owner).toBeUndefined();
  });
});
