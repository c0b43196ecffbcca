import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { useAtOnce } from '../components/useAtOnce';
import { useTheme } from '../components/useTheme';
import { durationText } from '../components/words';
import { gpuName } from './devices';
import {
  cellAt,
  cellsOf,
  cornerOf,
  DENSE,
  ICell,
  IJob,
  IMapLayout,
  INodeTile,
  layoutOf
} from './nodeCells';
import { clusterStateText } from './states';

/** Shades of jobs that lie side by side. */
const SHADES = 3;

interface IProps {
  readonly nodes: readonly INodeTile[];
  readonly jobs: ReadonlyMap<string, IJob>;
  readonly trans: TranslationBundle;
  /** Show a node's details; missing where they are in view. */
  readonly openNode?: (name: string) => void;
}

/**
 * A map of nodes and their GPUs, coloured by job. The arrow keys move over the nodes, and Enter opens one.
 */
export function NodeMap(props: IProps): JSX.Element {
  const { jobs, nodes, openNode, trans } = props;
  const frame = React.useRef<HTMLDivElement>(null);
  const canvas = React.useRef<HTMLCanvasElement>(null);
  const tipId = React.useId();
  const theme = useTheme();
  const width = useWidth(frame);
  const cells = React.useMemo(
    () => nodes.map(node => cellsOf(node, jobs)),
    [nodes, jobs]
  );
  const layout = React.useMemo(
    () => layoutFor(nodes, cells, width, frame.current),
    [nodes, cells, width]
  );
  const { at, forget, onKey, onPointer } = usePointer(layout, nodes, openNode);
  React.useLayoutEffect(() => {
    if (canvas.current) {
      draw(canvas.current, layout, nodes, cells);
    }
  }, [layout, nodes, cells, theme]);
  const pointed = at && at.node < nodes.length ? at : null;
  return (
    <div className="jp-HyperPod-NodeMap" ref={frame}>
      <div
        className="jp-HyperPod-NodeMap-canvas"
        role="group"
        tabIndex={0}
        aria-label={trans._n('Map of %1 node', 'Map of %1 nodes', nodes.length)}
        aria-describedby={tipId}
        style={{ width: layout.width, height: layout.height }}
        onMouseMove={onPointer}
        onMouseLeave={forget}
        onBlur={forget}
        onKeyDown={onKey}
        onClick={() => pointed && openNode?.(nodes[pointed.node].name)}
      >
        <canvas ref={canvas} aria-hidden="true" />
        {pointed && <Mark layout={layout} node={pointed.node} />}
      </div>
      <div
        id={tipId}
        className="jp-HyperPod-NodeMap-tip"
        role="status"
        hidden={!pointed}
        style={pointed ? tipPlace(layout, pointed.node) : undefined}
      >
        {pointed &&
          tipLines(
            nodes[pointed.node],
            cells[pointed.node][pointed.cell],
            jobs,
            trans
          ).map(line => <div key={line}>{line}</div>)}
      </div>
      <Legend cells={cells} trans={trans} />
    </div>
  );
}

/** A node that is pointed at, and one of its cells; -1: none of them. */
interface IPlace {
  readonly node: number;
  readonly cell: number;
}

/** Follows the mouse and the arrow keys. */
function usePointer(
  layout: IMapLayout,
  nodes: readonly INodeTile[],
  openNode?: (name: string) => void
): {
  at: IPlace | null;
  forget: () => void;
  onKey: (event: React.KeyboardEvent) => void;
  onPointer: (event: React.MouseEvent) => void;
} {
  const [at, setAt] = useAtOnce<IPlace | null>(null);
  const onPointer = (event: React.MouseEvent) => {
    const { left, top } = event.currentTarget.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    const next = cellAt(layout, nodes.length, x, y);
    if (at?.node !== next?.node || at?.cell !== next?.cell) {
      setAt(next);
    }
  };
  const onKey = (event: React.KeyboardEvent) => {
    const steps: Readonly<Record<string, number>> = {
      ArrowLeft: -1,
      ArrowRight: 1,
      ArrowUp: -layout.columns,
      ArrowDown: layout.columns
    };
    if (event.key === 'Enter' && at) {
      // Else the key would press the button that gets the focus.
      event.preventDefault();
      openNode?.(nodes[at.node].name);
    } else if (event.key in steps) {
      event.preventDefault();
      const next = at ? at.node + steps[event.key] : 0;
      if (next >= 0 && next < nodes.length) {
        setAt({ node: next, cell: -1 });
      }
    }
  };
  return { at, forget: () => setAt(null), onKey, onPointer };
}

/** A frame around the node that is pointed at. */
function Mark(props: { layout: IMapLayout; node: number }): JSX.Element {
  const [left, top] = cornerOf(props.layout, props.node);
  return (
    <span
      className="jp-HyperPod-NodeMap-mark"
      style={{
        left: left - 3,
        top: top - 3,
        width: props.layout.blockWidth + 6,
        height: props.layout.blockHeight + 6
      }}
    />
  );
}

/** Only the uses that the map shows. Looking at all cells takes too long for each move of the mouse. */
const Legend = React.memo(function Legend(props: {
  cells: readonly (readonly ICell[])[];
  trans: TranslationBundle;
}): JSX.Element {
  const { cells, trans } = props;
  const labels = {
    mine: trans.__('my jobs'),
    other: trans.__('other jobs'),
    free: trans.__('free'),
    drained: trans.__('out of service'),
    failed: trans.__('failed')
  };
  const shown = new Set(cells.flat().map(cell => cell.use));
  return (
    <ul className="jp-HyperPod-NodeMap-legend">
      {(Object.keys(labels) as (keyof typeof labels)[])
        .filter(use => shown.has(use))
        .map(use => (
          <li key={use} data-use={use}>
            {labels[use]}
          </li>
        ))}
    </ul>
  );
});

/** The tooltip of a node, or of one of its GPUs. */
function tipLines(
  node: INodeTile,
  cell: ICell | undefined,
  jobs: ReadonlyMap<string, IJob>,
  trans: TranslationBundle
): string[] {
  const lines = [`${node.name} · ${clusterStateText(node.state, trans)}`];
  if (node.gpus > 0) {
    lines.push(
      trans.__(
        '%1 of %2 %3 in use',
        node.used,
        node.gpus,
        node.gpu_type === null ? trans.__('GPUs') : gpuName(node.gpu_type)
      )
    );
  }
  if (node.reason) {
    lines.push(node.reason);
  }
  const shares = cell?.job
    ? node.shares.filter(share => share.job === cell.job)
    : node.shares;
  for (const share of shares.slice(0, 4)) {
    const job = jobs.get(share.job);
    const since = job ? durationText(job.started_at, null, trans) : '';
    lines.push(
      [
        job ? `${job.name} (${share.job})` : share.job,
        job?.user,
        share.gpus > 0 && trans._n('%1 GPU', '%1 GPUs', share.gpus),
        since
      ]
        .filter(Boolean)
        .join(' · ')
    );
  }
  return lines;
}

function tipPlace(layout: IMapLayout, node: number): React.CSSProperties {
  const [left, top] = cornerOf(layout, node);
  return { left, top: top + layout.blockHeight + 8 };
}

/** The width of an element, as it is now. */
function useWidth(element: React.RefObject<HTMLElement>): number {
  const [width, setWidth] = React.useState(0);
  React.useLayoutEffect(() => {
    const target = element.current;
    if (!target) {
      return;
    }
    setWidth(target.clientWidth);
    const observer = new ResizeObserver(() => setWidth(target.clientWidth));
    observer.observe(target);
    return () => observer.disconnect();
  }, [element]);
  return width;
}

function layoutFor(
  nodes: readonly INodeTile[],
  cells: readonly (readonly ICell[])[],
  width: number,
  frame: HTMLElement | null
): IMapLayout {
  const context = document.createElement('canvas').getContext('2d');
  if (context && frame) {
    context.font = fontOf(frame);
  }
  // A dense map has no names.
  const named = nodes.length < DENSE ? nodes : [];
  const names = named.map(
    node => context?.measureText(node.name).width ?? 8 * node.name.length
  );
  return layoutOf(
    nodes.length,
    Math.max(1, ...cells.map(one => one.length)),
    width,
    Math.min(220, Math.ceil(Math.max(0, ...names)))
  );
}

function fontOf(element: HTMLElement): string {
  const { fontFamily, fontSize } = getComputedStyle(element);
  return `${fontSize} ${fontFamily}`;
}

/** Draw all nodes. The colours are those of the theme, by the style sheet. */
function draw(
  canvas: HTMLCanvasElement,
  layout: IMapLayout,
  nodes: readonly INodeTile[],
  cells: readonly (readonly ICell[])[]
): void {
  const context = canvas.getContext('2d');
  if (!context || layout.width === 0) {
    return;
  }
  const scale = window.devicePixelRatio || 1;
  canvas.width = layout.width * scale;
  canvas.height = layout.height * scale;
  canvas.style.width = `${layout.width}px`;
  canvas.style.height = `${layout.height}px`;
  context.scale(scale, scale);
  context.font = fontOf(canvas);
  context.textBaseline = 'middle';
  const colour = coloursOf(canvas);
  nodes.forEach((node, index) => {
    const [left, top] = cornerOf(layout, index);
    if (layout.labelWidth > 0) {
      context.fillStyle = colour('text');
      context.fillText(
        node.name,
        left,
        top + layout.blockHeight / 2,
        layout.labelWidth - 8
      );
    }
    cells[index].forEach((cell, number) => {
      const x =
        left + layout.labelWidth + number * (layout.cell + layout.cellGap);
      drawCell(context, cell, [x, top, layout.cell], colour);
    });
  });
}

/** The colours of the map by their names in the style sheet. */
function coloursOf(element: HTMLElement): (name: string) => string {
  const style = getComputedStyle(element);
  const known = new Map<string, string>();
  return name => {
    const colour =
      known.get(name) ??
      (style.getPropertyValue(`--hyperpod-map-${name}`).trim() || 'gray');
    known.set(name, colour);
    return colour;
  };
}

/** A filled square for a job; a frame without one, with a texture where none can start. */
function drawCell(
  context: CanvasRenderingContext2D,
  cell: ICell,
  [x, y, size]: readonly [number, number, number],
  colour: (name: string) => string
): void {
  if (cell.use === 'mine' || cell.use === 'other') {
    context.fillStyle = colour(`${cell.use}-${shadeOf(cell.job)}`);
    context.fillRect(x, y, size, size);
    return;
  }
  context.strokeStyle = colour(cell.use);
  context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
  if (cell.use === 'free') {
    return;
  }
  context.beginPath();
  context.moveTo(x + 1, y + size - 1);
  context.lineTo(x + size - 1, y + 1);
  if (cell.use === 'failed') {
    context.moveTo(x + 1, y + 1);
    context.lineTo(x + size - 1, y + size - 1);
  }
  context.stroke();
}

/** Jobs next to each other differ in most cases. */
function shadeOf(job: string | null): number {
  let sum = 0;
  for (const char of job ?? '') {
    sum = (sum * 31 + char.charCodeAt(0)) % 9973;
  }
  return sum % SHADES;
}
