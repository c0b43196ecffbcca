import { ILogBlock, ILogFrame, ILogPage } from '../types';
import { ISocketLike } from '../socket';

/** A block of rank 0 (or of whom it is said) with one line each text. */
export function block(
  lines: string[] | null,
  parts: Partial<ILogBlock> = {}
): ILogBlock {
  return {
    attempt: 1,
    node: 'node-0',
    node_rank: 0,
    rank: 0,
    index: null,
    mark: null,
    lines: lines?.join('\n') ?? null,
    times: 1000,
    flags: null,
    ...parts
  };
}

export function frame(after: string, ...blocks: ILogBlock[]): ILogFrame {
  return { after, blocks };
}

export function page(
  before: string,
  frames: readonly ILogFrame[],
  parts: Partial<ILogPage> = {}
): ILogPage {
  const after = frames[frames.length - 1]?.after ?? before;
  return { before, after, frames, at_start: false, at_end: true, ...parts };
}

/** A frame as it comes over the socket. */
export function wire(id: number, seq: number, sent: ILogFrame): unknown {
  return {
    type: 'frame',
    id,
    seq,
    after: sent.after,
    blocks: sent.blocks.map(({ node_rank: nodeRank, ...rest }) => ({
      ...rest,
      node_rank: nodeRank
    }))
  };
}

/** A server's end of a socket. */
export class FakeSocket implements ISocketLike {
  onopen: ((event: Event) => void) | null = null;
  onmessage: ((event: MessageEvent) => void) | null = null;
  onclose: ((event: CloseEvent) => void) | null = null;
  readonly sent: Record<string, unknown>[] = [];
  closed = false;

  send(data: string): void {
    this.sent.push(JSON.parse(data) as Record<string, unknown>);
  }

  close(): void {
    this.closed = true;
  }

  open(): void {
    this.onopen?.(new Event('open'));
  }

  say(message: unknown): void {
    const data = JSON.stringify(message);
    this.onmessage?.(new MessageEvent('message', { data }));
  }

  break(): void {
    this.onclose?.({} as CloseEvent);
  }
}
