import { deadTopic } from '@millrace/contract';
import { type Clock, type Logger, systemClock } from '@millrace/platform';
import { type Bus, type BusMessage, BusRequestError, type JsonValue, type OutgoingMessage } from './bus.ts';

/** What a dead message's headers say of the original, beside the original's own headers. */
const header = {
  reason: 'millrace-dead-reason',
  topic: 'millrace-dead-topic',
  partition: 'millrace-dead-partition',
  offset: 'millrace-dead-offset',
  group: 'millrace-dead-group',
  /** How the body is kept: `json` as it was, `text` as one JSON string, `cut` as a string of its beginning. */
  body: 'millrace-dead-body',
} as const;

const replayGroup = 'dead-replay';
const longestReason = 1_000;
const cutCharacters = 64 * 1024;
const progressMs = 200;

/** Publishes a message that nobody can read to its topic's dead twin. Resolves when it is kept there. */
export async function bury(bus: Bus, group: string, message: BusMessage, reason: string): Promise<void> {
  const headers = {
    [header.reason]: reason.slice(0, longestReason),
    [header.topic]: message.topic,
    [header.partition]: String(message.partition),
    [header.offset]: message.offset,
    [header.group]: group,
  };
  const topic = deadTopic(message.topic);
  const json = parseJson(message.value);
  try {
    await bus.publish([
      {
        topic,
        key: message.key,
        value: json === undefined ? message.value : json,
        headers: { ...message.headers, ...headers, [header.body]: json === undefined ? 'text' : 'json' },
      },
    ]);
  } catch (error) {
    if (!(error instanceof BusRequestError)) throw error;
    // It fitted its own topic but, with these headers or as a string, not its twin: a trace of it is kept.
    const value = message.value.slice(0, cutCharacters);
    await bus.publish([{ topic, key: '', value, headers: { ...headers, [header.body]: 'cut' } }]);
  }
}

/** What `JSON.parse` makes of a text; undefined when it is not JSON. */
export function parseJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

export interface Replayed {
  replayed: number;
  /** Bodies that are not JSON or were cut: no consumer can ever read them. */
  skipped: number;
}

/**
 * Publishes the dead messages of a topic to it again, under their keys and in their order: after a fix, so that
 * consumers can read them. Handles what is dead when it is called and was not replayed before; what dies again
 * meanwhile waits for the next call.
 *
 * @throws {BusRequestError} `unknown_topic`
 */
export async function replayDead(
  bus: Bus,
  topic: string,
  { logger, clock = systemClock }: { logger: Logger; clock?: Clock },
): Promise<Replayed> {
  const dead = deadTopic(topic);
  const waiting = await bus.lag(replayGroup, dead);
  const done = new Map<number, number>();
  const result: Replayed = { replayed: 0, skipped: 0 };
  const isDone = (partition: number): boolean => (done.get(partition) ?? 0) >= (waiting.get(partition) ?? 0);
  if ([...waiting.keys()].every(isDone)) return result;

  const subscription = await bus.subscribe(
    replayGroup,
    dead,
    async (message, { signal }) => {
      // Died after the call: it stays uncommitted.
      if (isDone(message.partition)) await rejectOnAbort(signal);
      const original = revive(topic, message);
      if (original) await bus.publish([original]);
      else
        logger.warn({ topic, partition: message.partition, offset: message.offset }, 'dead message skipped');
      result[original ? 'replayed' : 'skipped'] += 1;
      done.set(message.partition, (done.get(message.partition) ?? 0) + 1);
    },
    { concurrency: waiting.size },
  );
  try {
    // The lag tells of partitions that another replay at the same time, or retention, has emptied.
    const isOver = async (): Promise<boolean> => {
      const lag = await bus.lag(replayGroup, dead);
      return [...lag].every(([partition, messages]) => messages === 0 || isDone(partition));
    };
    while (!(await isOver())) await clock.sleep(progressMs);
  } finally {
    await subscription.close();
  }
  return result;
}

/** The message as it was before it died; undefined when its body is not whole JSON. */
function revive(topic: string, message: BusMessage): OutgoingMessage | undefined {
  const value = parseJson(message.value);
  if (value === undefined || message.headers[header.body] !== 'json') return undefined;
  const own = new Set<string>(Object.values(header));
  const headers = Object.fromEntries(Object.entries(message.headers).filter(([name]) => !own.has(name)));
  return { topic, key: message.key, value, headers };
}

const rejectOnAbort = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
