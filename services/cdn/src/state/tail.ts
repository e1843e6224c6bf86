import { randomBytes } from 'node:crypto';
import { type Bus, type BusMessage, type Subscription } from '@millrace/bus';
import { topics } from '@millrace/contract';
import { type Logger, type Loop, type Metrics } from '@millrace/platform';
import { type PlaybackStates } from './playback-states.ts';

const topic = topics.playbackState;

export interface TailDeps {
  bus: Bus;
  states: Omit<PlaybackStates, 'view' | 'ages'>;
  logger: Logger;
  metrics: Metrics;
}

/**
 * Follows the state topic from its end: every process reads every partition, in a group of its own. Joining is
 * tried again with growing waits by whoever runs the loop.
 * @param attempted called after each attempt to join, whatever came of it
 */
export function createTail(deps: TailDeps, attempted: () => void): Loop {
  const unreadable = deps.metrics.counter(
    'millrace_cdn_state_unreadable_total',
    'State messages that could not be read.',
  );
  const group = `cdn-${randomBytes(12).toString('hex')}`;
  return {
    name: 'playback-state-tail',
    async run(signal, done) {
      let subscription: Subscription | undefined;
      try {
        const partitions = await deps.bus.partitions(topic.name);
        const onMessage = (message: BusMessage): Promise<void> => {
          handle(message, { ...deps, unreadable: () => unreadable.inc() });
          done();
          return Promise.resolve();
        };
        const onGap = (partition: number): void => {
          deps.logger.warn({ partition }, 'playback state changes may have been missed');
          deps.states.gap();
        };
        subscription = await deps.bus.subscribe(group, topic.name, onMessage, {
          from: 'latest',
          concurrency: partitions,
          onGap,
        });
        deps.states.following(partitions);
        done();
        attempted();
        await aborted(signal);
      } finally {
        attempted();
        if (subscription !== undefined) {
          deps.states.unfollowed();
          await subscription.close();
        }
      }
    },
  };
}

function handle(
  message: BusMessage,
  { states, logger, unreadable }: Pick<TailDeps, 'states' | 'logger'> & { unreadable: () => void },
): void {
  states.partitionSeen(message.partition);
  const parsed = topic.schema.safeParse(parseJson(message.value));
  if (!parsed.success) {
    unreadable();
    logger.error(
      { key: message.key, partition: message.partition, offset: message.offset },
      'unreadable playback state message',
    );
    if (message.key === '') states.gap();
    else states.unreadable(message.key);
    return;
  }
  switch (parsed.data.kind) {
    case 'video':
      states.videoChanged(parsed.data.state);
      break;
    case 'account':
      states.accountChanged(parsed.data.state);
      break;
    case 'project':
      states.projectChanged(parsed.data.state);
      break;
    case 'heartbeat':
      states.heartbeat(message.partition, Date.parse(parsed.data.at));
      break;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
