import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

/**
 * A whole number with buttons for less and more; the up and down arrow keys do the same.
 */
export function Stepper(props: {
  id: string;
  path: string;
  label: string;
  text: string;
  /** What counts while nothing is typed in. */
  effective: number;
  placeholder: string;
  /** The next number up or down; null when there is none. */
  next: (from: number, step: 1 | -1) => number | null;
  invalid: boolean;
  disabled: boolean;
  describedBy: string;
  trans: TranslationBundle;
  onChange: (text: string) => void;
}): JSX.Element {
  const { disabled, effective, label, next, onChange, text, trans } = props;
  const typed = text.trim() === '' ? effective : Number(text);
  const from = Number.isInteger(typed) ? typed : effective;
  const go = (step: 1 | -1) => {
    const to = next(from, step);
    if (to !== null && !disabled) {
      onChange(String(to));
    }
  };
  const button = (step: 1 | -1, sign: string, words: string) => (
    <button
      type="button"
      className="jp-HyperPod-Stepper-button"
      tabIndex={-1}
      aria-label={words}
      title={words}
      disabled={disabled || next(from, step) === null}
      onClick={() => go(step)}
    >
      {sign}
    </button>
  );
  return (
    <span className="jp-HyperPod-Stepper" data-invalid={props.invalid}>
      {button(-1, '−', trans.__('%1: less', label))}
      <input
        id={props.id}
        data-field={props.path}
        type="text"
        inputMode="numeric"
        autoComplete="off"
        spellCheck={false}
        className="jp-HyperPod-input"
        aria-describedby={props.describedBy}
        aria-invalid={props.invalid}
        disabled={disabled}
        placeholder={props.placeholder}
        value={text}
        onChange={event => onChange(event.target.value)}
        onKeyDown={event => {
          const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
          if (step === 1 || step === -1) {
            event.preventDefault();
            go(step);
          }
        }}
      />
      {button(1, '+', trans.__('%1: more', label))}
    </span>
  );
}

/** One more or one less, from a least to a most. */
export function byOne(
  least: number,
  most: number
): (from: number, step: 1 | -1) => number | null {
  return (from, step) => {
    const to = from + step;
    return to < least || to > most ? null : to;
  };
}

/** 0, 1, 2, 4, 8 ... and the GPUs of a whole node: few clicks lead to what people use. */
export function gpuSteps(
  most: number
): (from: number, step: 1 | -1) => number | null {
  return (from, step) => {
    const steps = [0];
    for (let one = 1; one < Math.max(most, 1); one *= 2) {
      steps.push(one);
    }
    steps.push(Math.max(most, 1));
    const found =
      step > 0
        ? steps.find(one => one > from)
        : [...steps].reverse().find(one => one < from);
    return found ?? null;
  };
}
