import { describe, expect, it } from '@jest/globals';
import { ObjectStoreError } from '@millrace/objects';
import { createManualClock } from '@millrace/testing';
import { DatabaseUnavailableError } from '@millrace/store';
import { patiently } from './patience.ts';

const never = new AbortController().signal;

describe('patiently', () => {
  it('sits an outage out with growing waits of five seconds at most', async () => {
    const clock = createManualClock();
    const startedAt = clock.now().getTime();
    const tries: number[] = [];
    const done = patiently({ clock, signal: never, forMs: 60_000 }, () => {
      tries.push(clock.now().getTime() - startedAt);
      if (tries.length < 8) throw new DatabaseUnavailableError('away');
      return Promise.resolve('done');
    });
    await clock.advance(30_000);
    expect(await done).toBe('done');
    expect(tries).toEqual([0, 250, 750, 1_750, 3_750, 7_750, 12_750, 17_750]);
  });

  it('lets the error through when its time is over', async () => {
    const clock = createManualClock();
    const outcome = expect(
      patiently({ clock, signal: never, forMs: 2_000 }, () =>
        Promise.reject(new ObjectStoreError('unavailable', 'away')),
      ),
    ).rejects.toThrow('away');
    await clock.advance(2_000);
    await outcome;
  });

  it('lets any other error through at once', async () => {
    const clock = createManualClock();
    for (const error of [new ObjectStoreError('no_such_key', 'gone'), new TypeError('ours')]) {
      await expect(
        patiently({ clock, signal: never, forMs: 60_000 }, () => Promise.reject(error)),
      ).rejects.toBe(error);
    }
  });

  it('ends when the signal aborts', async () => {
    const clock = createManualClock();
    const stop = new AbortController();
    const outcome = expect(
      patiently({ clock, signal: stop.signal, forMs: 60_000 }, () =>
        Promise.reject(new DatabaseUnavailableError('away')),
      ),
    ).rejects.toThrow('enough');
    await clock.whenSleeping();
    stop.abort(new Error('enough'));
    await outcome;
  });
});
