import { setTimeout as pause } from 'node:timers/promises';
import { type Phase } from '@millrace/platform';
import { type Queryable } from '@millrace/store';
import { waitFor } from '@millrace/testing';
import { type ServiceProcess } from '../../../dev/stack/service-process.ts';
import { type RunningStack } from '../../../dev/stack/stack.ts';
import { type Chance } from '../testing/random.ts';
import { type PhaseLog, type PhaseReached } from './phase-log.ts';
import { type SmallScratch } from './small-scratch.ts';

export interface FaultDeps {
  stack: RunningStack;
  phases: PhaseLog;
  db: Queryable;
  chance: Chance;
  /** Null where nothing can be mounted. */
  scratch: SmallScratch | null;
  signal: AbortSignal;
}

/** Something that befalls the service, and how it is seen that it did. Resolves when what it hit is there again. */
export interface Fault {
  name: string;
  happen(deps: FaultDeps): Promise<void>;
}

const patience = { timeoutMs: 180_000 };
/** Steps of the work after which a service is killed. */
const mostSteps = 12;
/** When nothing moves, a kill comes nevertheless. */
const longestStepsMs = 6_000;
/** The issue of the outage is its length: longer than retries within one request last. */
const outageMs = 30_000;

/** kill -9 in a phase: the process ends itself there. */
const killIn = (phase: Phase, where = ''): Fault => ({
  name: `kill -9 at ${phase}${where === '' ? '' : ` of ${where}`}`,
  happen: async (deps) => {
    const { service, reached } = await signalIn(deps, { phase, signal: 'SIGKILL', where });
    await untilBack(deps, service, reached.pid);
  },
});

/** kill -9 after a number of steps of the work, whoever made them. */
const killSometime = (name: string): Fault => ({
  name: `kill -9 of ${name}`,
  happen: async (deps) => {
    const { phases, chance, stack, signal } = deps;
    const until = (await phases.read()).length + 1 + chance.below(mostSteps);
    const deadline = performance.now() + longestStepsMs;
    while ((await phases.read()).length < until && performance.now() < deadline)
      await pause(10, undefined, { signal });
    const service = serviceOf(stack, name);
    const { pid } = service;
    service.kill('SIGKILL');
    await untilBack(deps, service, pid);
  },
});

const restart = (name: 'kafka' | 'postgres', how: 'kill' | 'stop'): Fault => ({
  name: `${how} and start of ${name}`,
  happen: async ({ stack }) => {
    const server = stack.servers[name];
    await server[how]();
    await server.start();
  },
});

const s3Outage: Fault = {
  name: `S3 away for ${outageMs / 1_000} s`,
  happen: async ({ stack, signal }) => {
    await stack.servers.s3.kill();
    try {
      await pause(outageMs, undefined, { signal });
    } finally {
      await stack.servers.s3.start();
    }
  },
};

/** An encoder sleeps past its lease, when all that is missing of its work is the record; then it goes on. */
const sleepingEncoder: Fault = {
  name: 'SIGSTOP of an encoder beyond its lease',
  happen: async (deps) => {
    const { db } = deps;
    const { service, reached } = await signalIn(deps, {
      ...{ phase: 'task.stored', signal: 'SIGSTOP', where: '"video"' },
    });
    const attempt = [reached.details['taskId'], reached.details['fence']];
    const count = async (text: string): Promise<number> => (await db.query(text, attempt)).rowCount;
    try {
      const hasAnother = (): Promise<number> =>
        count('select from encode_tasks where id = $1 and fence > $2::bigint');
      await waitFor(hasAnother, { ...patience, what: 'another attempt at the task of a sleeping encoder' });
    } finally {
      service.kill('SIGCONT');
    }
    // Its result is refused, and it gives up what it wrote.
    const hasGivenUp = (): Promise<number> =>
      count(
        `select from object_prefixes where task_id = $1 and fence = $2::bigint and delete_after is not null`,
      );
    await waitFor(hasGivenUp, { ...patience, what: 'the late attempt to be given up' });
  },
};

/** An encoder's disk is full for a while: it leaves the work to the other, and begins again when there is room. */
export const fullDisk: Fault = {
  name: 'no room on the 64 MiB of an encoder’s scratch',
  happen: async ({ stack, scratch }) => {
    if (scratch === null) throw new Error('the scratch is no disk of its own');
    const { ops } = serviceOf(stack, 'encoder-1');
    const check = async (): Promise<unknown> => {
      const answer = await fetch(`${ops}/ready`, { signal: AbortSignal.timeout(5_000) });
      return ((await answer.json()) as { checks?: { scratch?: unknown } }).checks?.scratch;
    };
    scratch.fill();
    try {
      const isFull = async (): Promise<boolean> => (await check()) === 'no room';
      await waitFor(isFull, { ...patience, what: 'an encoder to find no room' });
    } finally {
      scratch.free();
    }
    await waitFor(async () => (await check()) === 'ok', { ...patience, what: 'an encoder to find room' });
  },
};

/** Phases of which at least one kill must have been seen. */
export const namedPhases = {
  'between commit and relay': 'outbox.read',
  'between claim and commit': 'task.claimed',
  'between upload and record': 'task.stored',
  'between send and record': 'webhook.sent',
} as const satisfies Record<string, Phase>;

/**
 * All faults, as lanes that run side by side, so that they overlap as they like; each hits its own servers or services,
 * in an order that the seed decides. Only encoders that have nothing to do claim by a permit, as at the beginning; and
 * an attempt that met a full disk waits for a minute, so that comes early too.
 *
 * @param options.sendPoison comes among those of the servers, which it needs
 * @param options.hasSmallScratch whether an encoder's scratch is a disk that can be filled
 */
export function chooseFaults(
  chance: Chance,
  { sendPoison, hasSmallScratch }: { sendPoison: Fault; hasSmallScratch: boolean },
): Fault[][] {
  const topics = { events: 'millrace.video.events', usage: 'millrace.playback.usage' };
  return [
    [
      killIn(namedPhases['between claim and commit']),
      ...(hasSmallScratch ? [fullDisk] : []),
      ...chance.shuffled([
        killIn(namedPhases['between upload and record'], '"video"'),
        killIn(namedPhases['between upload and record'], '"assemble"'),
        killSometime('encoder-1'),
        killSometime('encoder-2'),
        sleepingEncoder,
      ]),
    ],
    chance.shuffled([
      killIn(namedPhases['between commit and relay'], topics.events),
      killIn('outbox.published', topics.events),
      killIn('message.handled', topics.usage),
      killSometime('reconciler'),
    ]),
    chance.shuffled([
      killIn(namedPhases['between send and record']),
      killIn('message.handled', topics.events),
      killSometime('webhooks'),
    ]),
    chance.shuffled([
      killIn('upload.created'),
      killIn('upload.joined'),
      killSometime('api'),
      killSometime('cdn'),
    ]),
    chance.shuffled([
      sendPoison,
      restart('kafka', 'kill'),
      restart('postgres', chance.next() < 0.5 ? 'kill' : 'stop'),
      s3Outage,
    ]),
  ];
}

async function signalIn(
  { phases, stack }: FaultDeps,
  order: Parameters<PhaseLog['order']>[0],
): Promise<{ service: ServiceProcess; reached: PhaseReached }> {
  const pids = new Map([...stack.services.values()].map((service) => [service.pid, service]));
  const taken = await phases.order(order);
  const reached = await waitFor(
    async () => {
      for (const service of stack.services.values()) pids.set(service.pid, service);
      return taken();
    },
    { ...patience, what: `a process at ${order.phase}` },
  );
  const service = pids.get(reached.pid);
  if (service === undefined) throw new Error(`nobody knows the process ${reached.pid} at ${order.phase}`);
  return { service, reached };
}

/** Resolves when the process is another one than this, which is gone, and ready. */
async function untilBack(
  { signal }: FaultDeps,
  service: ServiceProcess,
  gone: number | undefined,
): Promise<void> {
  await waitFor(() => service.pid !== gone, { ...patience, what: `another process of ${service.name}` });
  await service.untilReady(AbortSignal.any([signal, AbortSignal.timeout(patience.timeoutMs)]));
}

function serviceOf({ services }: RunningStack, name: string): ServiceProcess {
  const service = services.get(name);
  if (service === undefined) throw new Error(`there is no ${name}`);
  return service;
}
