import { randomUUID } from 'node:crypto';
import { mkdir, open, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Phase } from '@millrace/platform';

/** Names the folder of the log to the agent in a service. */
export const phaseFolderVariable = 'MILLRACE_TEST_PHASES';

/** What happens to the first process that comes to a phase. */
export interface PhaseOrder {
  /** Tells it from every other. */
  id: string;
  phase: Phase;
  signal: 'SIGKILL' | 'SIGSTOP';
  /** Words that the details must have in them. */
  where: string;
}

/** A process came to a phase. */
export interface PhaseReached {
  pid: number;
  service: string;
  phase: Phase;
  details: Record<string, unknown>;
  /** What befell it there. */
  order?: PhaseOrder;
}

/** What services say of the phases that they go through, and what befalls them there. */
export interface PhaseLog {
  /** Makes a service say it. */
  env: Record<string, string>;
  /** All that was reached, in the order in which it was written. Later calls add to the same list. */
  read(): Promise<readonly PhaseReached[]>;
  /** Sends a signal to the next process that comes to the phase. @returns tells which that was; null before */
  order(order: Omit<PhaseOrder, 'id'>): Promise<() => Promise<PhaseReached | null>>;
}

const agent = fileURLToPath(new URL('phase-agent.ts', import.meta.url));

export async function openPhaseLog(folder: string): Promise<PhaseLog> {
  const [orders, log] = [join(folder, 'orders'), join(folder, 'log.jsonl')];
  await mkdir(orders, { recursive: true });
  await writeFile(log, '');
  const read = follow(log);
  return {
    env: { [phaseFolderVariable]: folder, NODE_OPTIONS: `--import=${agent}` },
    read,
    order: async (asked) => {
      const id = randomUUID();
      // An agent sees all of it or nothing.
      await writeFile(join(folder, id), JSON.stringify({ id, ...asked }));
      await rename(join(folder, id), join(orders, id));
      return async () => (await read()).find(({ order }) => order?.id === id) ?? null;
    },
  };
}

/** Reads a log that grows, and of it each time only what is new. */
function follow(path: string): PhaseLog['read'] {
  const reached: PhaseReached[] = [];
  let offset = 0;
  const readOn = async (): Promise<void> => {
    const file = await open(path);
    try {
      const { size } = await file.stat();
      const { buffer, bytesRead } = await file.read(Buffer.alloc(size - offset), 0, size - offset, offset);
      // What follows the last end of a line is on its way.
      const whole = buffer.subarray(0, buffer.subarray(0, bytesRead).lastIndexOf('\n') + 1);
      for (const line of whole.toString('utf8').split('\n').slice(0, -1))
        reached.push(JSON.parse(line) as PhaseReached);
      offset += whole.length;
    } finally {
      await file.close();
    }
  };
  let last = Promise.resolve();
  return async () => {
    // One after the other: nothing is read twice.
    last = last.then(readOn, readOn);
    await last;
    return reached;
  };
}
