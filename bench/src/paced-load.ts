/**
 * Asks at a steady pace, in a process of its own, whether or not earlier answers have come. Told a `PacedOrder`, it
 * goes on until it is told `report`, and answers with a `PacedReport` of what came since the last one.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Agent } from 'undici';
import { nowMs } from './stack/numbers.ts';

export interface PacedOrder {
  /** By name: what is asked for in turn, and how often a second in all. */
  [name: string]: { perSecond: number; targets: readonly PacedTarget[] };
}

export interface PacedTarget {
  url: string;
  headers: Record<string, string>;
  /** Makes it a POST. */
  json?: string;
}

export interface PacedReport {
  [name: string]: {
    /** Of each answer, to its last byte. */
    ms: number[];
    /** How many there were of each; 0 stands for none at all. */
    statuses: Record<number, number>;
  };
}

/** A server that does not keep up is shown by its answers' times, not by memory that this process runs out of. */
const mostAtOnce = 256;
const agent = new Agent({ connections: mostAtOnce, pipelining: 1 });
let report: PacedReport = {};

async function ask(name: string, { url, headers, json }: PacedTarget): Promise<void> {
  const startedAt = nowMs();
  const { origin, pathname, search } = new URL(url);
  const status = await agent
    .request({
      ...{ origin, path: pathname + search, headers },
      ...(json === undefined ? { method: 'GET' } : { method: 'POST', body: json }),
    })
    .then(async ({ statusCode, body }) => {
      await body.dump({ limit: Infinity });
      return statusCode;
    })
    .catch(() => 0);
  const of = (report[name] ??= { ms: [], statuses: {} });
  of.ms.push(nowMs() - startedAt);
  of.statuses[status] = (of.statuses[status] ?? 0) + 1;
}

async function keepAsking(name: string, { perSecond, targets }: PacedOrder[string]): Promise<never> {
  const running = new Set<Promise<void>>();
  const startedAt = nowMs();
  for (let n = 0; ; n++) {
    const due = startedAt + (n * 1_000) / perSecond;
    if (due > nowMs()) await pause(due - nowMs());
    while (running.size >= mostAtOnce) await Promise.race(running);
    const target = targets[n % targets.length];
    if (target === undefined) throw new Error(`${name} has no targets`);
    const work = ask(name, target).finally(() => running.delete(work));
    running.add(work);
  }
}

process.on('message', (message: PacedOrder | 'report') => {
  if (message === 'report') {
    process.send?.(report);
    report = {};
    return;
  }
  for (const [name, of] of Object.entries(message)) void keepAsking(name, of);
});
process.on('disconnect', () => process.exit());
