import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { SubmitModel } from './model';
import { commandSource } from './source';

interface IProps {
  readonly model: SubmitModel;
  readonly trans: TranslationBundle;
}

/**
 * What runs: the selected cells or all of the notebook, a file, a command.
 */
export function SourceField({ model, trans }: IProps): JSX.Element {
  const { cellIds, cloneOf, label } = model.source;
  if (model.isOpen) {
    return <OpenSource model={model} trans={trans} />;
  }
  return (
    <fieldset className="jp-HyperPod-Which">
      <legend>{trans.__('Run')}</legend>
      <span className="jp-HyperPod-Which-label">
        {cloneOf === null
          ? label
          : trans.__('Code of run %1 as submitted', cloneOf)}
      </span>
      {cloneOf === null && cellIds !== null && (
        <Which model={model} trans={trans} />
      )}
    </fieldset>
  );
}

/** The selected cells or all of the notebook. */
function Which({ model, trans }: IProps): JSX.Element {
  const name = React.useId();
  const choice = (whole: boolean, words: string) => (
    <label className="jp-HyperPod-check">
      <input
        type="radio"
        name={name}
        checked={model.draft.whole === whole}
        onChange={() => model.choose({ whole })}
      />
      {words}
    </label>
  );
  return (
    <>
      {choice(false, cellWords(model, trans))}
      {choice(true, trans.__('Whole notebook'))}
    </>
  );
}

/** The selected cells. Only code cells count, as in the log and on the run page, and the label says so: JupyterLab's status bar counts all cells. */
function cellWords(model: SubmitModel, trans: TranslationBundle): string {
  const ids = model.source.cellIds ?? [];
  const cells = model.source.view?.().cells ?? [];
  const numbers = cells
    .filter(cell => ids.includes(cell.id))
    .map(cell => cell.number);
  return numbers.length === 1
    ? trans.__('Code cell %1', numbers[0])
    : trans.__('Code cells %1', rangesText(numbers));
}

/** Numbers as ranges: 1-3, 5. */
export function rangesText(numbers: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const number of numbers) {
    const last = ranges[ranges.length - 1];
    if (last && number === last[1] + 1) {
      last[1] = number;
    } else {
      ranges.push([number, number]);
    }
  }
  return ranges
    .map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`))
    .join(', ');
}

type Kind = 'command' | 'file';

/** What stands in the two fields at first: what a draft says. */
function beginning({ source }: SubmitModel): Record<Kind, string> {
  const { command } = source.spec;
  return {
    command: typeof command === 'string' ? command : '',
    file: source.path ?? ''
  };
}

/** A command or a file, typed in. */
function OpenSource({ model, trans }: IProps): JSX.Element {
  const [kind, setKind] = React.useState<Kind>(() =>
    model.source.path === null ? 'command' : 'file'
  );
  const [texts, setTexts] = React.useState(() => beginning(model));
  const folder = React.useRef(model.source.folder);
  const id = React.useId();
  const problem = model.problems.source;
  const isWrong = problem !== undefined && texts[kind] !== '';
  const type = (of: Kind, text: string) => {
    setTexts({ ...texts, [of]: text });
    if (of === 'file') {
      void model.setFile(text.trim());
    } else {
      model.setSource(commandSource(text, folder.current, trans.__('command')));
    }
  };
  const choose = (next: Kind) => {
    setKind(next);
    type(next, texts[next]);
  };
  const choice = (of: Kind, words: string) => (
    <label className="jp-HyperPod-check">
      <input
        type="radio"
        name={id}
        checked={kind === of}
        onChange={() => choose(of)}
      />
      {words}
    </label>
  );
  const shared = {
    'data-field': 'source',
    'aria-describedby': isWrong ? `${id}-problem` : `${id}-folder`,
    'aria-invalid': isWrong,
    spellCheck: false
  };
  return (
    <fieldset className="jp-HyperPod-Which" data-open>
      <legend>{trans.__('Run')}</legend>
      {choice('command', trans.__('Command'))}
      {choice('file', trans.__('File'))}
      <span id={`${id}-folder`} className="jp-HyperPod-Which-folder">
        {kind === 'command'
          ? trans.__('in %1', folder.current || '/')
          : trans.__('path below the server’s root folder')}
      </span>
      {kind === 'command' ? (
        <textarea
          {...shared}
          className="jp-HyperPod-input jp-HyperPod-textarea"
          aria-label={trans.__('Command')}
          placeholder={trans.__('Such as: %1', 'python train.py --lr 0.1')}
          rows={2}
          value={texts.command}
          onChange={event => type('command', event.target.value)}
        />
      ) : (
        <input
          {...shared}
          type="text"
          className="jp-HyperPod-input"
          aria-label={trans.__('File')}
          placeholder={trans.__('Such as: %1', 'work/train.py')}
          value={texts.file}
          onChange={event => type('file', event.target.value)}
        />
      )}
      {isWrong && (
        <p id={`${id}-problem`} className="jp-HyperPod-FieldRow-problem">
          {problem}
        </p>
      )}
    </fieldset>
  );
}
