import { setTimeout as pause } from 'node:timers/promises';
import { type Phase } from '@millrace/platform';
import { type Queryable } from '@millrace/store';
import { waitFor } from '@millrace/testing';
import { type ServiceProcess } from '../../../dev/stack/service-process.ts';
import { type RunningStack } from '../../../dev/stack/stack.ts';
import { type Chance } from '../testing/random.ts';
import { type PhaseLog, type PhaseOrder, type PhaseReached } from './phase-log.ts';
import { type SmallScratch } from './small-scratch.ts';

export interface FaultDeps {
  stack: RunningStack;
  phases: PhaseLog;
  db: Queryable;
  /** Null where nothing can be mounted. */
  scratch: SmallScratch | null;
  /** Processes that got a SIGKILL, other than by an order. */
  killed: Set<number>;
  /** When a server was away. */
  outages: Outage[];
  /** Tells who took the fault's order; null before. */
  taken: () => Promise<PhaseReached | null>;
  signal: AbortSignal;
}

/** In milliseconds since 1970. */
export interface Outage {
  from: number;
  to: number;
}

/** Something that befalls the service, and how it is seen that it did. */
export interface Fault {
  name: string;
  /** Given before there is anything that it may hit. */
  order?: Omit<PhaseOrder, 'id'>;
  /** Resolves when what it hit is there again. */
  happen(deps: FaultDeps): Promise<void>;
}

/** Others may be away at the same time. */
const patienceMs = 180_000;
/** Steps of the work after which a service is killed, at most. */
const mostSteps = 12;
/** When nothing moves, a kill comes nevertheless. */
const longestStepsMs = 6_000;
/** The issue of the outage is its length: longer than retries within one request last. */
const outageMs = 30_000;

/** kill -9 in a phase: the process ends itself there. */
const killIn = (phase: Phase, where = ''): Fault => ({
  name: `kill -9 at ${phase}${where === '' ? '' : ` of ${where}`}`,
  order: { phase, signal: 'SIGKILL', where },
  happen: async (deps) => {
    const { service, reached } = await untilTaken(deps, phase);
    await untilBack(deps, service, reached.pid);
  },
});

/** kill -9 after a number of steps of the work, whoever made them. */
const killSometime = (name: string, steps: number): Fault => ({
  name: `kill -9 of ${name} after ${steps} steps`,
  happen: async (deps) => {
    const { phases, stack, signal } = deps;
    const until = (await phases.read()).length + steps;
    const deadline = performance.now() + longestStepsMs;
    while ((await phases.read()).length < until && performance.now() < deadline)
      await pause(10, undefined, { signal });
    const service = serviceOf(stack, name);
    await untilBack(deps, service, await kill(deps, service));
  },
});

const restart = (name: 'kafka' | 'postgres', how: 'kill' | 'stop'): Fault => ({
  name: `${how} and start of ${name}`,
  happen: async ({ stack, outages }) => {
    const server = stack.servers[name];
    const from = Date.now();
    await server[how]();
    await server.start();
    outages.push({ from, to: Date.now() });
  },
});

const s3Outage: Fault = {
  name: `S3 away for ${outageMs / 1_000} s`,
  happen: async ({ stack, outages, signal }) => {
    const from = Date.now();
    await stack.servers.s3.kill();
    try {
      await pause(outageMs, undefined, { signal });
    } finally {
      await stack.servers.s3.start();
      outages.push({ from, to: Date.now() });
    }
  },
};

/** An encoder sleeps past its lease, when all that is missing of its work is the record; then it goes on. */
const sleepingEncoder: Fault = {
  name: 'SIGSTOP of an encoder beyond its lease',
  order: { phase: 'task.stored', signal: 'SIGSTOP', where: '"video"' },
  happen: async (deps) => {
    const { db } = deps;
    const { service, reached } = await untilTaken(deps, 'task.stored');
    const attempt = [reached.details['taskId'], reached.details['fence']];
    const count = async (text: string): Promise<number> => (await db.query(text, attempt)).rowCount;
    try {
      const hasAnother = (): Promise<number> =>
        count('select from encode_tasks where id = $1 and fence > $2::bigint');
      await until(deps, 'another attempt at the task of a sleeping encoder', hasAnother);
    } finally {
      service.kill('SIGCONT');
    }
    // Its result is refused, and it gives up what it wrote.
    const outcome = await until(deps, 'the late attempt to be given up', async () => {
      if (await count('select from task_outputs where task_id = $1 and fence = $2::bigint')) return 'kept';
      const givenUp = `select from object_prefixes
        where task_id = $1 and fence = $2::bigint and delete_after is not null`;
      return (await count(givenUp)) > 0 ? 'given up' : null;
    });
    if (outcome === 'kept') throw new Error('the record kept a result that came after its lease');
  },
};

/** An encoder's disk is full for a while: it leaves the work to the other, and begins again when there is room. */
export const fullDisk: Fault = {
  name: 'no room on the 64 MiB of an encoder’s scratch',
  happen: async (deps) => {
    const { stack, scratch } = deps;
    if (scratch === null) throw new Error('the scratch is no disk of its own');
    const { ops } = serviceOf(stack, 'encoder-1');
    const check = async (): Promise<unknown> => {
      const answer = await fetch(`${ops}/ready`, { signal: AbortSignal.timeout(5_000) });
      return ((await answer.json()) as { checks?: { scratch?: unknown } }).checks?.scratch;
    };
    scratch.fill();
    try {
      const isFull = async (): Promise<boolean> => (await check()) === 'no room';
      await until(deps, 'an encoder to find no room', isFull);
    } finally {
      scratch.free();
    }
    await until(deps, 'an encoder to find room', async () => (await check()) === 'ok');
  },
};

/** Phases of which at least one kill must have been seen. */
export const namedPhases = {
  'between commit and relay': 'outbox.read',
  'between claim and commit': 'task.claimed',
  'between upload and record': 'task.stored',
  'between send and record': 'webhook.sent',
} as const satisfies Record<string, Phase>;

/** Comes before all others: only encoders that have nothing else to do claim by a permit. */
export const openingFault = killIn(namedPhases['between claim and commit']);

/**
 * All other faults, as lanes that run side by side, so that they overlap as they like; each hits its own servers or
 * services, in an order that the seed decides. An attempt that meets a full disk waits for a minute, so that comes early.
 *
 * @param options.sendPoison comes among those of the servers, which it needs
 * @param options.hasSmallScratch whether an encoder's scratch is a disk that can be filled
 */
export function chooseFaults(
  chance: Chance,
  { sendPoison, hasSmallScratch }: { sendPoison: Fault; hasSmallScratch: boolean },
): Fault[][] {
  const topics = { events: 'millrace.video.events', usage: 'millrace.playback.usage' };
  const killAnytime = (name: string): Fault => killSometime(name, 1 + chance.below(mostSteps));
  return [
    [
      ...(hasSmallScratch ? [fullDisk] : []),
      ...chance.shuffled([
        killIn(namedPhases['between upload and record'], '"video"'),
        killIn(namedPhases['between upload and record'], '"assemble"'),
        killAnytime('encoder-1'),
        killAnytime('encoder-2'),
        sleepingEncoder,
      ]),
    ],
    chance.shuffled([
      killIn(namedPhases['between commit and relay'], topics.events),
      killIn('outbox.published', topics.events),
      killIn('message.handled', topics.usage),
      killAnytime('reconciler'),
    ]),
    chance.shuffled([
      killIn(namedPhases['between send and record']),
      killIn('message.handled', topics.events),
      killAnytime('webhooks'),
    ]),
    chance.shuffled([
      killIn('upload.created'),
      killIn('upload.joined'),
      killAnytime('api'),
      killAnytime('cdn'),
    ]),
    chance.shuffled([
      sendPoison,
      restart('kafka', 'kill'),
      restart('postgres', chance.next() < 0.5 ? 'kill' : 'stop'),
      s3Outage,
    ]),
  ];
}

async function untilTaken(
  deps: FaultDeps,
  phase: Phase,
): Promise<{ service: ServiceProcess; reached: PhaseReached }> {
  const reached = await until(deps, `a process at ${phase}`, deps.taken);
  const service = [...deps.stack.services.values()].find(
    ({ pid, ends }) => pid === reached.pid || ends.some((end) => end.pid === reached.pid),
  );
  if (service === undefined) throw new Error(`nobody knows the process ${reached.pid} at ${phase}`);
  return { service, reached };
}

/** Kills a process of the service, the next one when it has none just now. @returns the one that it was */
export async function kill(
  deps: Pick<FaultDeps, 'killed' | 'signal'>,
  service: ServiceProcess,
): Promise<number> {
  const pid = await until(deps, `a process of ${service.name} to kill`, () => {
    const running = service.pid;
    return service.kill('SIGKILL') ? running : null;
  });
  deps.killed.add(pid);
  return pid;
}

/** Resolves when the process is another one than this, which is gone, and ready. */
async function untilBack(deps: FaultDeps, service: ServiceProcess, gone: number | undefined): Promise<void> {
  await until(deps, `another process of ${service.name}`, () => service.pid !== gone);
  await service.untilReady(AbortSignal.any([deps.signal, AbortSignal.timeout(patienceMs)]));
}

/** Waits for something to be seen. @throws when it takes too long, and as soon as the signal aborts */
async function until<T>(
  { signal }: Pick<FaultDeps, 'signal'>,
  what: string,
  look: () => T | Promise<T>,
): Promise<NonNullable<T>> {
  const seen = async (): Promise<{ value: NonNullable<T> } | 'aborted' | null> => {
    if (signal.aborted) return 'aborted';
    const value = await look();
    return value ? { value } : null;
  };
  const found = await waitFor(seen, { timeoutMs: patienceMs, what });
  signal.throwIfAborted();
  if (found === 'aborted') throw new Error(`nobody waits for ${what} any more`);
  return found.value;
}

export function serviceOf({ services }: RunningStack, name: string): ServiceProcess {
  const service = services.get(name);
  if (service === undefined) throw new Error(`there is no ${name}`);
  return service;
}
