import { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { CostBox } from './costBox';
import { FieldList, usedFields } from './fieldList';
import { FindingList } from './findingList';
import { isAnswered } from './findings';
import { groupOf, isMain } from './layout';
import { MainFields } from './mainFields';
import { SubmitModel } from './model';
import { PresetBar } from './presetBar';
import { PreviewPane } from './previewPane';
import { SourceField } from './sourceField';
import { StatusLine } from './statusLine';
import { TrustBox } from './trustBox';

/**
 * The submit dialog's body: what everyone sets, whether it would start, and, folded, all other settings and the preview.
 */
export class SubmitForm extends ReactWidget {
  constructor(model: SubmitModel, trans: TranslationBundle) {
    super();
    this.addClass('jp-HyperPod-SubmitForm');
    this._model = model;
    this._trans = trans;
  }

  /** Go to what keeps the run from being sent. */
  showProblem(): void {
    const [first] = Object.keys(this._model.problems);
    if (first !== undefined) {
      this._jump(first);
    } else if (this._model.costQuestion === null) {
      const place = this._model.isDistrusted
        ? '[data-trust]'
        : '[data-findings]';
      this.node.querySelector<HTMLElement>(place)?.focus();
    }
  }

  /** Go to a field, wherever it is. */
  focusField(path: string): void {
    this._jump(path);
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._model.dispose();
      super.dispose();
    }
  }

  protected override render(): JSX.Element {
    return (
      <UseSignal signal={this._model.changed}>
        {() => (
          <Content
            model={this._model}
            trans={this._trans}
            register={this._register}
          />
        )}
      </UseSignal>
    );
  }

  private readonly _model: SubmitModel;
  private readonly _trans: TranslationBundle;
  private readonly _register = (jump: (path: string) => void) => {
    this._jump = jump;
    if (this._wanted !== null) {
      jump(this._wanted);
      this._wanted = null;
    }
  };
  /** A field that was asked for before it was drawn. */
  private _wanted: string | null = null;
  private _jump: (path: string) => void = path => {
    this._wanted = path;
  };
}

function Content(props: {
  model: SubmitModel;
  trans: TranslationBundle;
  /** Gives away the function that goes to a field. */
  register: (jump: (path: string) => void) => void;
}): JSX.Element {
  const { model, register, trans } = props;
  const [open, setOpen] = useGroups(model);
  const [target, setTarget] = React.useState<{ path: string } | null>(null);
  const root = React.useRef<HTMLDivElement>(null);
  const jump = React.useCallback((path: string) => setTarget({ path }), []);
  React.useEffect(() => {
    register(jump);
  }, [register, jump]);
  React.useEffect(() => {
    if (!target) {
      return;
    }
    const { path } = target;
    const group = groupOf(path);
    const isInGroup = model.field(path) !== null && !isMain(path);
    if (isInGroup && !open.includes(group)) {
      setOpen([...open, group]);
      return;
    }
    setTarget(null);
    const selector = `[data-field="${CSS.escape(path)}"]`;
    root.current?.querySelector<HTMLElement>(selector)?.focus();
  }, [target, open, setOpen, model]);
  if (!model.ready) {
    return <Waiting model={model} trans={trans} />;
  }
  return (
    <div ref={root} className="jp-HyperPod-SubmitForm-content">
      <PresetBar model={model} trans={trans} />
      <SourceField model={model} trans={trans} />
      <MainFields model={model} trans={trans} />
      <StatusLine model={model} trans={trans} jump={jump} />
      <TrustBox model={model} trans={trans} />
      {model.costQuestion !== null && (
        <CostBox question={model.costQuestion} trans={trans} />
      )}
      <Failure model={model} trans={trans} />
      <FindingList model={model} trans={trans} jump={jump} />
      <FieldList model={model} trans={trans} open={open} setOpen={setOpen} />
      <PreviewPane model={model} trans={trans} />
    </div>
  );
}

/** The groups that are unfolded: at first those of which the form was opened with fields set. */
function useGroups(
  model: SubmitModel
): [
  readonly string[],
  React.Dispatch<React.SetStateAction<readonly string[]>>
] {
  const [open, setOpen] = React.useState<readonly string[]>([]);
  const opens = model.ready && model.start !== null;
  React.useEffect(() => {
    if (opens) {
      setOpen(usedFields(model).map(field => groupOf(field.path)));
    }
  }, [opens, model]);
  return [open, setOpen];
}

/** Why nothing can be said of what was typed: no answer came, or a permission is missing. */
function Failure(props: {
  model: SubmitModel;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { model, trans } = props;
  const { error } = model;
  return error && !isAnswered(error) ? (
    <ErrorMessage error={error} trans={trans} retry={() => model.recheck()} />
  ) : null;
}

function Waiting(props: {
  model: SubmitModel;
  trans: TranslationBundle;
}): JSX.Element {
  const { model, trans } = props;
  const root = React.useRef<HTMLDivElement>(null);
  const failed = model.error !== null;
  React.useEffect(() => {
    if (failed) {
      // What to do about it; what had the focus before is behind the dialog.
      root.current?.querySelector<HTMLElement>('button')?.focus();
    }
  }, [failed]);
  return (
    <div ref={root}>
      {model.error ? (
        <ErrorMessage
          error={model.error}
          trans={trans}
          retry={() => void model.load()}
        />
      ) : (
        <p role="status">{trans.__('Loading settings…')}</p>
      )}
    </div>
  );
}
