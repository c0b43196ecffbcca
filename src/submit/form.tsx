import { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { ApiError } from '../api';
import { FieldList, usedFields } from './fieldList';
import { FindingList } from './findingList';
import { fieldAt, withoutField } from './findings';
import { hintOf } from './hints';
import { labelOf } from './labels';
import { SubmitModel } from './model';
import { PreviewPane } from './previewPane';
import { StartBar } from './startBar';
import { TrustBox } from './trustBox';

/**
 * The submit dialog's body: the form on one side, what would come of it on the other.
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
    const { fields, problems } = this._model;
    const first = fields.find(field => field.path in problems);
    if (first) {
      this._jump(first.path);
    } else {
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
  const [more, setMore] = useMore(model);
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
    const basic = model.fields.find(one => one.path === target.path)?.basic;
    if (!basic && !more) {
      setMore(true);
      return;
    }
    setTarget(null);
    const selector = `[data-field="${CSS.escape(target.path)}"]`;
    root.current?.querySelector<HTMLElement>(selector)?.focus();
  }, [target, more, model]);
  if (!model.ready) {
    return <Waiting model={model} trans={trans} />;
  }
  return (
    <div ref={root} className="jp-HyperPod-SubmitForm-columns">
      <div className="jp-HyperPod-SubmitForm-fields">
        <StartBar model={model} trans={trans} />
        <FieldList model={model} trans={trans} more={more} onMore={setMore} />
      </div>
      <div className="jp-HyperPod-SubmitForm-preview">
        <TrustBox model={model} trans={trans} />
        <Refusal model={model} trans={trans} />
        <FindingList model={model} trans={trans} jump={jump} />
        <PreviewPane model={model} trans={trans} />
      </div>
    </div>
  );
}

/** Whether the fields behind "More" are shown: at first when the form was opened with some of them set. */
function useMore(model: SubmitModel): [boolean, (more: boolean) => void] {
  const [more, setMore] = React.useState(false);
  const opens = model.ready && model.start !== null;
  React.useEffect(() => {
    if (opens && usedFields(model).length > 0) {
      setMore(true);
    }
  }, [opens, model]);
  return [more, setMore];
}

/** Why it can't be sent, where that isn't among the findings. */
function Refusal(props: {
  model: SubmitModel;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { model, trans } = props;
  const { error } = model;
  if (!error || Array.isArray(error.detail.findings)) {
    return null;
  }
  const { code, detail, status } = error;
  const name = typeof detail.field === 'string' ? detail.field : null;
  const field = fieldAt(name, model.fields);
  const message = field
    ? `${labelOf(field, trans)}: ${withoutField(error.message, name)}`
    : error.message;
  const hint = hintOf(code, trans) ?? error.hint;
  const told = new ApiError({ code, message, hint, detail }, status);
  return <ErrorMessage error={told} trans={trans} />;
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
