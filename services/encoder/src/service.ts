import { type Bus, consume, createMember, type Member } from '@millrace/bus';
import { topics } from '@millrace/contract';
import { type ObjectStore } from '@millrace/objects';
import {
  type Clock,
  type Logger,
  type Loop,
  type LoopSupervisor,
  type Metrics,
  reachPhase,
  repeatEvery,
  type Service,
  superviseLoops,
} from '@millrace/platform';
import { type Database } from '@millrace/store';
import { type EncoderConfig } from './config.ts';
import { type EncoderProcess } from './process/encoder-process.ts';
import { createFfmpegProcess } from './process/fluent-ffmpeg-process.ts';
import { createFfprobe, type MediaProbe } from './process/media-probe.ts';
import { openScratch } from './scratch.ts';
import { BlockReader } from './source/block-reader.ts';
import { attempt } from './work/attempt.ts';
import { Slots } from './work/slots.ts';

export interface EncoderDeps {
  config: EncoderConfig;
  store: Database;
  bus: Bus;
  objects: ObjectStore;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  /** ffmpeg and ffprobe of this machine unless told. */
  process?: EncoderProcess;
  probe?: MediaProbe;
}

const group = 'encoder';

/**
 * Turns originals into HLS. A message of `millrace.encode.tasks` is a permit to look for work; what is worked
 * on is claimed from the record, under a lease (design.md, "The record and the transport" 6 and 7). While the bus is
 * away, work is found by the idle look alone.
 */
export function createEncoder(deps: EncoderDeps): Service {
  const { config, objects, clock, logger, metrics } = deps;
  const reader = new BlockReader({ objects, clock, logger, cacheBytes: config.ENCODER_CACHE_BYTES });
  let slots: Slots | undefined;
  let member: Member | undefined;
  let loops: LoopSupervisor | undefined;
  let stopping = false;
  let hasRoom = true;

  const open = async (): Promise<Slots> => {
    const tools = {
      ...deps,
      process: deps.process ?? createFfmpegProcess(),
      probe: deps.probe ?? createFfprobe(),
      reader,
      scratch: await openScratch(config.ENCODER_SCRATCH_DIR, config.ENCODER_SCRATCH_SPARE_BYTES),
    };
    const mayClaim = async (): Promise<boolean> => {
      const had = hasRoom;
      hasRoom = await tools.scratch.hasRoom();
      if (had && !hasRoom) logger.warn({}, 'no room on the scratch: work is left to others');
      if (!had && hasRoom) logger.info({}, 'room on the scratch again');
      return hasRoom;
    };
    await reader.listen();
    return new Slots({ ...deps, mayClaim, work: (task, signal) => attempt(tools, task, signal) });
  };

  return {
    name: 'encoder',
    start: async (signal) => {
      slots = await open();
      member = permits(slots, deps);
      loops = superviseLoops([idleLook(slots, deps), member.loop], { clock, logger, metrics });
      loops.start();
      await member.attempted(signal);
    },
    stop: async () => {
      stopping = true;
      await Promise.all([loops?.stop(), slots?.close()]);
      await reader.close();
    },
    health: () => {
      const checks = { ...loops?.checks(), scratch: hasRoom ? 'ok' : 'no room' };
      return {
        healthy: true,
        ready: member?.joined === true && !stopping && Object.values(checks).every((check) => check === 'ok'),
        checks,
      };
    },
  };
}

/**
 * A permit is used up by one look, whatever it finds: when nothing is free, whoever is looks within a second. Only a
 * record that cannot be asked leaves the permit to be delivered again.
 */
const permits = (slots: Slots, { bus, logger, metrics }: EncoderDeps): Member =>
  createMember('consume-tasks', () =>
    consume(bus, {
      ...{ group, topic: topics.encodeTasks, logger, metrics },
      handle: async (_, { topic, partition, offset }) => {
        if (await slots.look()) reachPhase('task.claimed', () => ({ topic, partition, offset }));
      },
      pause: () => slots.whenFree(),
    }),
  );

/** Looks for work now and then: a permit may be lost, work may not. */
const idleLook = (slots: Slots, { clock, config }: EncoderDeps): Loop => ({
  name: 'idle-look',
  run: repeatEvery(config.ENCODER_IDLE_MS, clock, async () => {
    while (await slots.look());
  }),
});
