import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from '@millrace/client';
import { startReceiver } from '../../../e2e/src/demo/receiver.ts';
import { createPlayer } from '../../../e2e/src/demo/walk.ts';
import { type PacedReport } from '../paced-load.ts';
import { type BenchCustomer, type BenchStack } from './bench-stack.ts';
import { uploadClip } from './clips.ts';
import { watchCpu } from './cpu-shares.ts';
import { type Heap, openHeap } from './inspector.ts';
import { residentBytes, type Sample } from './memory.ts';
import { nowMs } from './numbers.ts';
import { startLoad } from './start-load.ts';

/** What a process had in memory, from the end of the warm-up on. */
export interface ProcessMemory {
  name: string;
  /** Pages in memory. */
  resident: Sample[];
  /** What JavaScript keeps; none of what is not ours. */
  heap: Sample[];
}

export interface UploadsReport {
  processes: ProcessMemory[];
  starts: PacedReport[string];
  /** Clips that were encoded, announced, played, held and lifted meanwhile. */
  clips: number;
  cpu: string;
}

export interface UploadsOptions {
  startsPerSecond: number;
  seconds: number;
  /** Before the first sample. */
  warmUpSeconds: number;
  samplesPerMinute: number;
  /** From the end of one clip to the start of the next. */
  clipPauseMs: number;
  signal: AbortSignal;
}

const sizeBytes = 256 * 1024 ** 2;

/**
 * Starts uploads at a steady pace, which nobody goes on with, and carries a clip through all services now and then.
 * Samples are taken after a collection of all rubbish, so that they show what is kept.
 *
 * @param stack whose services were started `withInspector`
 */
export async function measureUploads(stack: BenchStack, options: UploadsOptions): Promise<UploadsReport> {
  const { running } = stack;
  const { api } = running.ready();
  const customer = await stack.customer();
  const heaps = new Map<string, Heap>();
  for (const name of running.services.keys()) heaps.set(name, await openHeap(stack.logOf(name)));
  const load = startLoad({
    starts: {
      perSecond: options.startsPerSecond,
      targets: [
        {
          url: `${api}/v1/projects/${customer.projectId}/uploads`,
          headers: { authorization: `Bearer ${customer.key}`, 'content-type': 'application/json' },
          json: JSON.stringify({ fileName: 'film.mp4', sizeBytes, contentType: 'video/mp4' }),
        },
      ],
    },
  });
  const clips = carryClips(stack, customer, options);
  try {
    await pause(1_000 * options.warmUpSeconds, undefined, options);
    await load.underWay();
    const endWatch = await watchCpu(running.ready().pids);
    const processes = await Promise.race([takeSamples(running, heaps, options), clips.failed]);
    const [cpu, report] = [await endWatch(), await load.report()];
    return {
      processes,
      starts: report['starts'] ?? { ms: [], statuses: {} },
      clips: await clips.stop(),
      cpu,
    };
  } finally {
    await clips.stop();
    await load.stop();
    for (const heap of heaps.values()) heap.close();
  }
}

async function takeSamples(
  running: BenchStack['running'],
  heaps: ReadonlyMap<string, Heap>,
  { seconds, samplesPerMinute, signal }: UploadsOptions,
): Promise<ProcessMemory[]> {
  const { pids } = running.ready();
  const processes = Object.keys(pids).map((name): ProcessMemory => ({ name, resident: [], heap: [] }));
  const startedAt = nowMs();
  const sinceStart = (): number => (nowMs() - startedAt) / 1_000;
  for (let n = 0; sinceStart() < seconds; n++) {
    const dueAt = startedAt + (n * 60_000) / samplesPerMinute;
    await pause(Math.max(0, dueAt - nowMs()), undefined, { signal });
    for (const { name, resident, heap } of processes) {
      if (running.ready().pids[name] !== pids[name]) throw new Error(`${name} has ended meanwhile`);
      const used = await heaps.get(name)?.usedBytes();
      if (used !== undefined) heap.push({ at: sinceStart(), bytes: used });
      const bytes = await residentBytes(pids[name] ?? 0);
      if (bytes !== null) resident.push({ at: sinceStart(), bytes });
    }
  }
  return processes;
}

interface ClipCarrier {
  /** Rejects when a clip did not come through. */
  failed: Promise<never>;
  /** @returns how many came through */
  stop(): Promise<number>;
}

/** Gives every service its work: a clip is encoded, announced by a webhook, played, held and lifted; then the next. */
function carryClips(
  { running }: BenchStack,
  customer: BenchCustomer,
  { clipPauseMs, signal }: UploadsOptions,
): ClipCarrier {
  const { client, projectId, domain } = customer;
  const { admin, adminToken } = running.ready();
  const team = createClient({ baseUrl: admin, bearer: adminToken });
  const stopping = new AbortController();
  const either = AbortSignal.any([signal, stopping.signal]);
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => undefined);
  let count = 0;
  const carry = async (): Promise<void> => {
    const receiver = await startReceiver();
    try {
      const body = { url: receiver.url, events: ['video.ready' as const, 'video.held' as const] };
      receiver.trust((await client.createWebhookEndpoint({ projectId, body })).signingSecret ?? '');
      const player = createPlayer(`https://${domain}`);
      while (!either.aborted) {
        const videoId = await uploadClip(customer);
        const { playlistUrl } = await client.createPlaybackToken({ projectId, videoId, body: { domain } });
        await player.get(playlistUrl ?? '');
        await team.holdVideo({ videoId, body: {} });
        await team.liftVideo({ videoId });
        while (receiver.next() !== null);
        count += 1;
        await pause(clipPauseMs, undefined, { signal: either }).catch(() => undefined);
      }
    } finally {
      await receiver.stop();
    }
  };
  const carrying = carry().catch((error: unknown) => failed.reject(error));
  return {
    failed: failed.promise,
    stop: async () => {
      stopping.abort();
      await carrying;
      return count;
    },
  };
}
