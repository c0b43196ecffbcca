import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { SignalWidget } from '../components/signalWidget';
import { pageLanguage } from '../components/words';
import { ILogHistogram } from './types';
import { LogViewModel } from './viewModel';

/** A shorter log is seen as a whole. */
const LEAST_SECONDS = 5;

/** Height of the picture in its own units. */
const HEIGHT = 20;

/**
 * A log over time, as a strip of bars: how much was written, with errors in red. A click leads there.
 */
export class TimelineStrip extends SignalWidget {
  constructor(model: LogViewModel, trans: TranslationBundle) {
    super(model.timeline.changed);
    this.addClass('jp-HyperPod-LogTimeline');
    this._model = model;
    this._trans = trans;
    model.timeline.changed.connect(this._onTimeline, this);
    model.viewedChanged.connect(this.update, this);
    this.hide();
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._model.timeline.changed.disconnect(this._onTimeline, this);
      this._model.viewedChanged.disconnect(this.update, this);
      super.dispose();
    }
  }

  protected override render(): JSX.Element | null {
    const { histogram } = this._model.timeline;
    return histogram && isLong(histogram) ? (
      <Strip model={this._model} histogram={histogram} trans={this._trans} />
    ) : null;
  }

  private _onTimeline(): void {
    const { histogram } = this._model.timeline;
    this.setHidden(!histogram || !isLong(histogram));
  }

  private readonly _model: LogViewModel;
  private readonly _trans: TranslationBundle;
}

interface IStripProps {
  model: LogViewModel;
  histogram: ILogHistogram;
  trans: TranslationBundle;
}

function Strip({ histogram, model, trans }: IStripProps): JSX.Element {
  const [at, setAt] = React.useState(-1);
  const { matches, sizes } = histogram;
  const [begin, end] = [histogram.begin ?? 0, histogram.end ?? 1];
  const step = (end - begin) / sizes.length;
  const most = Math.max(...sizes, 1);
  const text =
    at < 0 ? wholeText(histogram, trans) : bucketText(histogram, at, trans);
  const jump = (bucket: number): void =>
    void model.feed.goToTime(begin + bucket * step);
  const bucketOf = (event: React.PointerEvent | React.MouseEvent): number => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    const part = (event.clientX - left) / Math.max(1, width);
    return limit(Math.floor(part * sizes.length), sizes.length);
  };
  const viewed = model.viewed;
  const x = (time: number): number =>
    limit((time - begin) / step, sizes.length + 1);
  return (
    <>
      <span>{clock(begin)}</span>
      <svg
        viewBox={`0 0 ${sizes.length} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="slider"
        tabIndex={0}
        aria-label={trans.__('Log over time')}
        aria-valuemin={0}
        aria-valuemax={sizes.length - 1}
        aria-valuenow={Math.max(0, at)}
        aria-valuetext={text}
        onPointerMove={event => setAt(bucketOf(event))}
        onPointerLeave={() => setAt(-1)}
        onClick={event => jump(bucketOf(event))}
        onKeyDown={event => {
          const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
          if (move) {
            setAt(limit(at + move, sizes.length));
          } else if (event.key === 'Enter' && at >= 0) {
            jump(at);
          } else {
            return;
          }
          event.preventDefault();
        }}
      >
        <title>{text}</title>
        {viewed && (
          <rect
            className="jp-mod-viewed"
            x={x(viewed.begin)}
            width={Math.max(0.5, x(viewed.end) - x(viewed.begin))}
            height={HEIGHT}
          />
        )}
        {sizes.map((size, bucket) => (
          <Bar
            key={bucket}
            at={bucket}
            height={Math.sqrt(size / most) * (HEIGHT - 4)}
            hasErrors={(matches[bucket] ?? 0) > 0}
            isActive={bucket === at}
          />
        ))}
      </svg>
      <span>{clock(end)}</span>
    </>
  );
}

function Bar(props: {
  at: number;
  height: number;
  hasErrors: boolean;
  isActive: boolean;
}): JSX.Element | null {
  const { at, hasErrors, height, isActive } = props;
  if (height === 0 && !isActive) {
    return null;
  }
  const shown = Math.max(1, height);
  return (
    <>
      <rect
        className={
          isActive ? 'jp-mod-active' : hasErrors ? 'jp-mod-error' : undefined
        }
        x={at + 0.1}
        y={HEIGHT - shown}
        width={0.8}
        height={shown}
      />
      {hasErrors && (
        <rect className="jp-mod-error" x={at} y={0} width={1} height={3} />
      )}
    </>
  );
}

function isLong({ begin, end }: ILogHistogram): boolean {
  return (end ?? 0) - (begin ?? 0) >= LEAST_SECONDS;
}

function limit(value: number, count: number): number {
  return Math.min(Math.max(value, 0), count - 1);
}

function bucketText(
  histogram: ILogHistogram,
  at: number,
  trans: TranslationBundle
): string {
  const { matches, sizes } = histogram;
  const [begin, end] = [histogram.begin ?? 0, histogram.end ?? 1];
  const time = clock(begin + ((end - begin) / sizes.length) * at);
  const errors = matches[at] ?? 0;
  return errors > 0
    ? trans._n('%2: %1 error', '%2: %1 errors', errors, time)
    : sizes[at] > 0
      ? time
      : trans.__('%1: no output', time);
}

function wholeText(histogram: ILogHistogram, trans: TranslationBundle): string {
  const { logs, logs_total: total, matches_until: until } = histogram;
  const parts = [trans.__('Output over time. Click to jump.')];
  if (until !== null) {
    parts.push(trans.__('Errors are counted until %1.', clock(until)));
  }
  if (logs < total) {
    parts.push(trans.__('Output of %1 of %2 logs.', logs, total));
  }
  return parts.join(' ');
}

function clock(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString(pageLanguage(), {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hour12: false
  });
}
