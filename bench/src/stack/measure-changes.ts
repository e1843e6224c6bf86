import { createKafkaBus } from '@millrace/bus/kafka';
import { silentLogger } from '@millrace/platform';
import { waitFor } from '@millrace/testing';
import { type Change, type ChangesOrder } from '../changes-load.ts';
import { type Arrivals, followBare, followTopic } from './arrivals.ts';
import { type BenchStack } from './bench-stack.ts';
import { watchCpu } from './cpu-shares.ts';
import { cloneReadyVideo } from './clone-video.ts';
import { clipsOf } from './clips.ts';
import { startHelper } from './helper-process.ts';

/** Milliseconds of each change, from its commit (or the call of the bare producer's send). */
interface Journey {
  /** To the consumer's handler. */
  toConsumer: number[];
  /** The first part of that: until the relay (or the bare producer) had it on its way to the broker. */
  toProducer: number[];
}

export interface ChangesRound {
  state: Journey;
  events: Journey;
  bare: Journey;
  /** What used the processors while ours was measured. */
  cpu: string;
}

export interface ChangesOptions {
  perSecond: number;
  /** Of each of the two, in each round. */
  seconds: number;
  rounds: number;
  signal: AbortSignal;
}

/** So many that no change waits for the last one of its video. */
const videos = 64;
const bareTopic = 'bench.bare';
const patienceMs = 60_000;

/** The two take turns on one broker; a first round, of which nothing is told, warms them up. */
export async function* measureChanges(
  stack: BenchStack,
  options: ChangesOptions,
): AsyncGenerator<ChangesRound> {
  const { kafka } = stack.running.servers;
  const bus = createKafkaBus({
    connection: { brokers: [kafka.address], clientId: 'bench' },
    logger: silentLogger,
  });
  const load = startHelper('changes-load.ts');
  const open: Arrivals[] = [];
  const opened = async (arrivals: Promise<Arrivals>): Promise<Arrivals> => {
    open.push(await arrivals);
    return arrivals;
  };
  try {
    const [first = ''] = await clipsOf(stack, 1);
    const order = {
      ...{ connectionString: stack.connectionString, broker: kafka.address, topic: bareTopic },
      ...{
        videoIds: await cloneReadyVideo(stack.connectionString, first, videos),
        perSecond: options.perSecond,
      },
    };
    await bus.ensureTopics({ [bareTopic]: { partitions: 4, retentionMs: 3_600_000, compacted: false } });
    const state = await opened(followTopic(bus, 'playbackState'));
    const events = await opened(followTopic(bus, 'videoEvents'));
    const bare = await opened(followBare(kafka.address, bareTopic));
    const run = async (how: ChangesOrder['how'], seconds: number): Promise<Change[]> => {
      options.signal.throwIfAborted();
      load.tell({ ...order, how, seconds });
      const made = (await load.hear(options.signal)) as Change[];
      const arrivals = how === 'bare' ? [bare] : [state, events];
      await waitFor(() => arrivals.every((each) => each.count() >= made.length), {
        ...{ timeoutMs: patienceMs, what: 'the last change to arrive' },
      });
      return made;
    };
    for (let round = 0; round <= options.rounds; round++) {
      const seconds = round === 0 ? Math.min(5, options.seconds) : options.seconds;
      const endWatch = await watchCpu(stack.running.ready().pids);
      const made = await run('record', seconds);
      const cpu = await endWatch();
      const ours = { state: journeyOf(made, state), events: journeyOf(made, events), cpu };
      const bareJourney = journeyOf(await run('bare', seconds), bare);
      if (round > 0) yield { ...ours, bare: bareJourney };
    }
  } finally {
    await load.stop();
    await Promise.all(open.map((each) => each.close()));
    await bus.close();
  }
}

/** A video's changes arrive in the order in which they were made. */
function journeyOf(made: readonly Change[], arrivals: Arrivals): Journey {
  const came = Map.groupBy(arrivals.take(), ({ videoId }) => videoId);
  const journey: Journey = { toConsumer: [], toProducer: [] };
  for (const [videoId, changes] of Map.groupBy(made, (change) => change.videoId)) {
    const of = came.get(videoId) ?? [];
    if (of.length !== changes.length) {
      throw new Error(`${changes.length} changes of a video arrived as ${of.length} messages`);
    }
    for (const [n, { at }] of changes.entries()) {
      const arrival = of[n];
      if (arrival === undefined) continue;
      journey.toConsumer.push(arrival.at - at);
      journey.toProducer.push(arrival.sentAt - at);
    }
  }
  return journey;
}
