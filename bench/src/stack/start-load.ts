import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type PacedOrder, type PacedReport } from '../paced-load.ts';

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
  const child = fork(fileURLToPath(new URL('../paced-load.ts', import.meta.url)), { execArgv: [] });
  child.send(order);
  const report = async (): Promise<PacedReport> => {
    child.send('report');
    const [came] = (await once(child, 'message')) as [PacedReport];
    return came;
  };
  return {
    report,
    underWay: async () => {
      const silent = new Set(Object.keys(order));
      do for (const name of Object.keys(await report())) silent.delete(name);
      while (silent.size > 0 && (await pause(pollMs, true)));
    },
    stop: async () => {
      const ended = once(child, 'exit');
      child.disconnect();
      await ended;
    },
  };
}

/** How many answers there were of each status, the most first. */
export const statusesOf = ({ statuses }: PacedReport[string]): string =>
  Object.entries(statuses)
    .sort(([, a], [, b]) => b - a)
    .map(([status, count]) => `${count} × ${status === '0' ? 'no answer' : status}`)
    .join(', ');
