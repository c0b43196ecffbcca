import { listOf, numberOf, recordOf, textOf } from '../api';
import type * as wire from '../api/types';
import { ILogHits, ILogPage } from '../logs/types';
import { decodeHits, decodePage } from '../logs/decode';

/**
 * A log of a node, or of a deep health check.
 */
export interface INodeLog {
  /** AWS' name for it. */
  readonly stream: string;
  /** `lifecycle`, `health`, `deep-health-check`, or what AWS' name begins with. */
  readonly kind: string;
}

/** What an answer cost: how often CloudWatch was asked for it. */
export interface ICosts {
  readonly calls: number;
}

/** The logs from an answer. */
export function decodeLogs(value: unknown): readonly INodeLog[] {
  const from = recordOf<wire.IHyperpodNodeLogs>(value, 'logs');
  return listOf(from, 'logs', item => {
    const log = recordOf<wire.IHyperpodNodeLog>(item, 'log');
    return { stream: textOf(log, 'stream'), kind: textOf(log, 'kind') };
  });
}

/** A page of logs from an answer. */
export function decodeNodePage(value: unknown): ILogPage & ICosts {
  const from = recordOf<wire.INodeLogPage>(value, 'page');
  return { ...decodePage(value), calls: numberOf(from, 'calls') };
}

/** Hits from an answer. */
export function decodeNodeHits(value: unknown): ILogHits & ICosts {
  const from = recordOf<wire.INodeLogHits>(value, 'hits');
  return { ...decodeHits(value), calls: numberOf(from, 'calls') };
}
