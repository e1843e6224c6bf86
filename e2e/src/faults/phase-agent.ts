// Loaded into each service before its main file: tells of the phases that it goes through, and ends or stops the
// process at the very phase that was asked for. A signal to oneself is delivered before the call returns, so nothing
// runs after it.
import { subscribe } from 'node:diagnostics_channel';
import { appendFileSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type PhaseOrder, type PhaseReached, phaseFolderVariable } from './phase-log.ts';

const folder = process.env[phaseFolderVariable];
// services/<name>/src/main.ts
const service = basename(dirname(dirname(process.argv[1] ?? '')));

/** An order that fits. Of processes that come for one at the same time one gets it. */
function take(orders: string, reached: { phase: string; words: string }): PhaseOrder | null {
  for (const name of readdirSync(orders)) {
    try {
      const order = JSON.parse(readFileSync(join(orders, name), 'utf8')) as PhaseOrder;
      if (order.phase !== reached.phase || !reached.words.includes(order.where)) continue;
      rmSync(join(orders, name));
      return order;
    } catch {
      // Another was quicker.
    }
  }
  return null;
}

if (folder !== undefined) {
  subscribe('millrace:phase', (message) => {
    const { phase, details } = message as Pick<PhaseReached, 'phase' | 'details'>;
    const order = take(join(folder, 'orders'), { phase, words: JSON.stringify(details) });
    const reached: PhaseReached = { pid: process.pid, service, phase, details };
    const line = JSON.stringify(order === null ? reached : { ...reached, order });
    appendFileSync(join(folder, 'log.jsonl'), `${line}\n`);
    if (order !== null) process.kill(process.pid, order.signal);
  });
}
