import { randomBytes } from 'node:crypto';
import { type Bus } from '@millrace/bus';
import { type PlaybackConfirmationMessage, topics } from '@millrace/contract';
import { type Clock, type Loop, repeatEvery } from '@millrace/platform';
import { type PlaybackStates } from './playback-states.ts';
import { type RecordClient } from './record-client.ts';

/** Tells the record's side that this process is there, and up to which change it decides. */
export interface Confirmations {
  /**
   * Tells that this process is there; to be called before it serves anybody. By the internal route, which writes the
   * record at once; by the bus where that is away.
   */
  announce(): Promise<void>;
  /** Whether either took the word of this process: no hold counts as effective without a thought for it from then on. */
  readonly announced: boolean;
  /**
   * Tells by the bus each second what is news, and now and then that nothing is. Where the bus does not take it, tells
   * by the internal route that this process lives all the same.
   */
  loop: Loop;
  /** Tells that this process serves nobody any longer. */
  leave(): Promise<void>;
}

const intervalMs = 1_000;
/** Longer than the heartbeats' interval; a process that is silent for several of these is held to be silent. */
const signOfLifeMs = 20_000;
/** How long the bus may take for one word. */
const patienceMs = 5_000;

export function createConfirmations({
  bus,
  record,
  states,
  clock,
}: {
  bus: Bus;
  record: Pick<RecordClient, 'note'>;
  states: Pick<PlaybackStates, 'confirmedUpToMs'>;
  clock: Clock;
}): Confirmations {
  const bootId = randomBytes(12).toString('hex');
  let told = { upToMs: -Infinity, atMs: -Infinity };
  let announced = false;

  const tell = async (more: { ended?: true } = {}): Promise<void> => {
    const upToMs = states.confirmedUpToMs();
    const atMs = clock.now().getTime();
    const confirmedUpTo = new Date(Math.max(0, upToMs)).toISOString();
    const value: PlaybackConfirmationMessage = { v: 1, bootId, confirmedUpTo, ...more };
    await inTime(bus.publish([{ topic: topics.playbackConfirmations.name, key: bootId, value }]), clock);
    told = { upToMs, atMs };
    announced = true;
  };
  const note = async (cutOff: boolean): Promise<void> => {
    await record.note(bootId, { cutOff });
    announced = true;
  };
  const isNews = (): boolean =>
    states.confirmedUpToMs() > told.upToMs || clock.now().getTime() - told.atMs >= signOfLifeMs;
  const tellNews = async (): Promise<void> => {
    if (!isNews()) return;
    try {
      await tell();
    } catch (error) {
      // What cannot be told either way is told by the next try.
      await note(true).catch(() => undefined);
      throw error;
    }
  };

  return {
    announce: () => note(false).catch(() => tell()),
    get announced() {
      return announced;
    },
    leave: () => tell({ ended: true }),
    loop: { name: 'playback-confirmations', run: repeatEvery(intervalMs, clock, tellNews) },
  };
}

/** @throws {Error} when the bus takes longer than a word is worth: an adapter tries for much longer by itself */
async function inTime(publishing: Promise<void>, clock: Clock): Promise<void> {
  const over = new AbortController();
  const late = clock.sleep(patienceMs, over.signal).then(() => {
    throw new Error('the bus did not take a confirmation in time');
  });
  late.catch(() => undefined);
  await Promise.race([publishing, late]).finally(() => over.abort());
}
