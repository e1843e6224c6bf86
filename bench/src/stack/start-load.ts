import { setTimeout as pause } from 'node:timers/promises';
import { type PacedOrder, type PacedReport } from '../paced-load.ts';
import { startHelper } from './helper-process.ts';

export interface PacedLoad {
  /** Resolves when all that is asked for has been answered before; what came until now is no part of a report. */
  underWay(): Promise<void>;
  /** What came since the last report. */
  report(): Promise<PacedReport>;
  stop(): Promise<void>;
}

const pollMs = 50;

/** Starts a load that goes on until it is stopped. */
export function startLoad(order: PacedOrder): PacedLoad {
  const helper = startHelper('paced-load.ts');
  helper.tell(order);
  const report = async (): Promise<PacedReport> => {
    helper.tell('report');
    return (await helper.hear()) as PacedReport;
  };
  return {
    report,
    underWay: async () => {
      const silent = new Set(Object.keys(order));
      while (silent.size > 0) {
        await pause(pollMs);
        for (const name of Object.keys(await report())) silent.delete(name);
      }
    },
    stop: () => helper.stop(),
  };
}

/** How many answers there were of each status, the most first. */
export const statusesOf = ({ statuses }: PacedReport[string]): string =>
  Object.entries(statuses)
    .sort(([, a], [, b]) => b - a)
    .map(([status, count]) => `${count} × ${status === '0' ? 'no answer' : status}`)
    .join(', ');
