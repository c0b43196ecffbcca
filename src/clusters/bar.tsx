import * as React from 'react';

/** A part of a bar. */
export interface IBarPart {
  readonly use: 'used' | 'borrowed' | 'off';
  readonly amount: number;
}

/**
 * How much of something is used, as a bar. The text beside it says the same.
 */
export function Bar(props: {
  parts: readonly IBarPart[];
  total: number;
  /** Nothing of it can be had. */
  isOff?: boolean;
}): JSX.Element {
  const { isOff = false, parts, total } = props;
  return (
    <span className="jp-HyperPod-Bar" data-off={isOff} aria-hidden="true">
      {parts
        .filter(part => part.amount > 0)
        .map(part => (
          <span
            key={part.use}
            className="jp-HyperPod-Bar-part"
            data-use={part.use}
            style={{ width: shareText(part.amount, total) }}
          />
        ))}
    </span>
  );
}

/** A share in percent, for CSS. */
export function shareText(amount: number, total: number): string {
  const share = total > 0 ? Math.min(1, amount / total) : 1;
  return `${Math.round(share * 1000) / 10}%`;
}
