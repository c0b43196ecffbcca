import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { loadPlot } from '../charts/chart';
import { Curves } from '../runs/curves';
import { axisOf, ICurveView, namesOf, rankChart } from './curveData';
import { ISeries } from './seriesModel';

/** Charts that are shown at first. */
const FIRST_CHARTS = 6;

/**
 * The curves of what a run's ranks print.
 */
export function RunCurves(props: {
  series: readonly ISeries[];
  trans: TranslationBundle;
}): JSX.Element | null {
  const { series, trans } = props;
  const [view, setView] = useCurveView(series);
  const [isAll, setAll] = React.useState(false);
  // What draws is on its way while the numbers are.
  React.useEffect(() => void loadPlot(), []);
  const names = namesOf(series);
  const shown = isAll ? names : names.slice(0, FIRST_CHARTS);
  const charts = React.useMemo(
    () => shown.map(name => rankChart(name, series, view, trans)),
    // The names follow from the series.
    [series, view, isAll, trans]
  );
  if (names.length === 0) {
    return null;
  }
  return (
    <section className="jp-HyperPod-Resources">
      <div className="jp-HyperPod-Resources-head">
        <h2>{trans.__('Training')}</h2>
        <CurveControls view={view} setView={setView} trans={trans} />
      </div>
      <Curves charts={charts} trans={trans} />
      {names.length > shown.length && (
        <button
          type="button"
          className="jp-HyperPod-link"
          onClick={() => setAll(true)}
        >
          {trans.__('Show %1 more', names.length - shown.length)}
        </button>
      )}
    </section>
  );
}

/** How curves are drawn; over the steps, where there are any, until the user chooses. */
export function useCurveView(
  series: readonly ISeries[]
): [ICurveView, (view: ICurveView) => void] {
  const [chosen, setChosen] = React.useState<ICurveView | null>(null);
  const axis = axisOf(series);
  const standard = React.useMemo<ICurveView>(
    () => ({ x: axis, isLog: false, smoothing: 0 }),
    [axis]
  );
  return [chosen ?? standard, setChosen];
}

/** Axis, scale and smoothing. */
export function CurveControls(props: {
  view: ICurveView;
  setView: (view: ICurveView) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { setView, trans, view } = props;
  const axis = (x: ICurveView['x'], words: string) => (
    <button
      type="button"
      className="jp-HyperPod-button"
      aria-pressed={view.x === x}
      onClick={() => setView({ ...view, x })}
    >
      {words}
    </button>
  );
  return (
    <>
      <span role="group" aria-label={trans.__('Horizontal axis')}>
        {axis('step', trans.__('Step'))}
        {axis('time', trans.__('Time'))}
      </span>
      <label className="jp-HyperPod-check">
        <input
          type="checkbox"
          checked={view.isLog}
          onChange={event => setView({ ...view, isLog: event.target.checked })}
        />
        {trans.__('Log scale')}
      </label>
      <label className="jp-HyperPod-field">
        {trans.__('Smoothing')}
        <input
          type="range"
          min={0}
          max={0.99}
          step={0.01}
          value={view.smoothing}
          aria-valuetext={`${Math.round(view.smoothing * 100)} %`}
          onChange={event =>
            setView({ ...view, smoothing: Number(event.target.value) })
          }
        />
      </label>
      <span className="jp-HyperPod-Resources-hint">
        {trans.__('Drag to zoom, double-click to reset')}
      </span>
    </>
  );
}
