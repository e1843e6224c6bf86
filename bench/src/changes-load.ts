/**
 * Makes changes at a steady pace, in a process of its own, so that it shares no event loop with who waits for them.
 * Told a `ChangesOrder`, it answers with a `Change` for each.
 *
 * `record`: each change is a transaction that holds a ready video or lifts its hold, as the admin route's.
 * `bare`: each is a message that a producer of kafkajs sends, and nothing else.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { silentLogger } from '@millrace/platform';
import { createDatabase, createHoldCommands, type HoldReference } from '@millrace/store';
import kafkajs, { type Producer } from 'kafkajs';
import { nowMs } from './stack/numbers.ts';

export interface ChangesOrder {
  how: 'record' | 'bare';
  connectionString: string;
  broker: string;
  /** Of the bare producer. */
  topic: string;
  /** Each changes again and again, one change at a time. */
  videoIds: readonly string[];
  perSecond: number;
  seconds: number;
}

export interface Change {
  videoId: string;
  /** When the commit had been answered, or the send was called: milliseconds since 1970. */
  at: number;
}

/** A video's next change; resolves with when it was made. */
type Changer = (videoId: string, isHeld: boolean) => Promise<number>;

const connections = 8;

async function recordChanger({
  connectionString,
  videoIds,
}: ChangesOrder): Promise<[Changer, () => Promise<void>]> {
  const db = createDatabase({ connectionString, max: connections, logger: silentLogger });
  const holds = createHoldCommands(db);
  const holdOf = (videoId: string): HoldReference => ({ videoId, source: 'admin', reference: 'bench' });
  const change: Changer = async (videoId, isHeld) => {
    if (isHeld) await holds.lift(holdOf(videoId), 'bench');
    else await holds.place({ ...holdOf(videoId), reason: null, legal: false }, 'bench');
    return nowMs();
  };
  await Promise.all(videoIds.slice(0, connections).map(() => db.query('select 1')));
  return [change, () => db.close()];
}

async function bareChanger({ broker, topic }: ChangesOrder): Promise<[Changer, () => Promise<void>]> {
  const kafka = new kafkajs.Kafka({ brokers: [broker], logLevel: kafkajs.logLevel.NOTHING });
  const producer: Producer = kafka.producer();
  await producer.connect();
  const change: Changer = async (videoId, isHeld) => {
    const at = nowMs();
    // As long as the state of a video.
    const value = JSON.stringify({ videoId, isHeld, filler: 'x'.repeat(300) });
    await producer.send({ topic, acks: -1, messages: [{ key: videoId, value }] });
    return at;
  };
  return [change, () => producer.disconnect()];
}

async function makeChanges(order: ChangesOrder): Promise<Change[]> {
  const [change, close] = await (order.how === 'record' ? recordChanger : bareChanger)(order);
  const held = new Set<string>();
  const idle = [...order.videoIds];
  const made: Change[] = [];
  const running = new Set<Promise<void>>();
  const changeOne = async (videoId: string): Promise<void> => {
    const at = await change(videoId, held.has(videoId));
    made.push({ videoId, at });
    if (!held.delete(videoId)) held.add(videoId);
    idle.push(videoId);
  };
  const startedAt = nowMs();
  for (let n = 0; n < order.perSecond * order.seconds; n++) {
    const due = startedAt + (n * 1_000) / order.perSecond;
    if (due > nowMs()) await pause(due - nowMs());
    while (idle.length === 0) await Promise.race(running);
    const work = changeOne(idle.shift() ?? '').finally(() => running.delete(work));
    running.add(work);
  }
  await Promise.all(running);
  // Whoever comes next finds all of them as they were.
  for (const videoId of [...held]) await changeOne(videoId);
  await close();
  return made;
}

process.on('message', (order: ChangesOrder) => {
  void makeChanges(order).then((made) => process.send?.(made));
});
process.on('disconnect', () => process.exit());
