import { randomBytes } from 'node:crypto';
import { type Bus } from '@millrace/bus';
import { type PlaybackConfirmationMessage, topics } from '@millrace/contract';
import { type Clock, type Loop, repeatEvery } from '@millrace/platform';
import { type PlaybackStates } from './playback-states.ts';

/** Tells the record's side up to which change this process decides. */
export interface Confirmations {
  /** Tells that this process is there; to be called before it serves anybody. */
  announce(): Promise<void>;
  /** Tells each second what is news, and now and then that nothing is. */
  loop: Loop;
  /** Tells that this process serves nobody any longer. */
  leave(): Promise<void>;
}

const intervalMs = 1_000;
/** Longer than the heartbeats' interval; a process that is silent for several of these is held to be gone. */
const signOfLifeMs = 20_000;

export function createConfirmations({
  bus,
  states,
  clock,
}: {
  bus: Bus;
  states: Pick<PlaybackStates, 'confirmedUpToMs'>;
  clock: Clock;
}): Confirmations {
  const bootId = randomBytes(12).toString('hex');
  let told = { upToMs: -Infinity, atMs: -Infinity };

  const tell = async (more: { ended?: true } = {}): Promise<void> => {
    const upToMs = states.confirmedUpToMs();
    const atMs = clock.now().getTime();
    const confirmedUpTo = new Date(Math.max(0, upToMs)).toISOString();
    const value: PlaybackConfirmationMessage = { v: 1, bootId, confirmedUpTo, ...more };
    await bus.publish([{ topic: topics.playbackConfirmations.name, key: bootId, value }]);
    told = { upToMs, atMs };
  };
  const isNews = (): boolean =>
    states.confirmedUpToMs() > told.upToMs || clock.now().getTime() - told.atMs >= signOfLifeMs;

  return {
    announce: () => tell(),
    leave: () => tell({ ended: true }),
    loop: {
      name: 'playback-confirmations',
      run: repeatEvery(intervalMs, clock, () => (isNews() ? tell() : undefined)),
    },
  };
}
