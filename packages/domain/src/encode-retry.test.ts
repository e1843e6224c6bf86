import { describe, expect, it } from '@jest/globals';
import { decideTrouble, type TaskTries, type TroubleDecision } from './encode-retry.ts';

const fresh: TaskTries = { class: 'standard', failures: 0, losses: 0, waits: 0, waitedMs: 0 };

/** Decisions for the same trouble again and again, until it fails or `most` were made. */
function repeat(trouble: Parameters<typeof decideTrouble>[1], most: number): TroubleDecision[] {
  const decisions: TroubleDecision[] = [];
  let tries = fresh;
  while (decisions.length < most) {
    const decision = decideTrouble(tries, trouble);
    decisions.push(decision);
    if (decision.kind === 'fail') break;
    tries = decision.tries;
  }
  return decisions;
}

describe('decideTrouble', () => {
  it('never retries bad input and keeps its own failure', () => {
    const failure = { code: 'no_video_track', message: 'The file has no picture.' } as const;
    expect(decideTrouble(fresh, { kind: 'source', failure, message: 'no video' })).toEqual({
      kind: 'fail',
      failure,
      tries: fresh,
    });
  });

  it('retries a crash of ffmpeg twice with growing waits, then fails with encoding_failed [VID-013]', () => {
    const decisions = repeat({ kind: 'encoding', message: 'SIGSEGV' }, 10);
    expect(
      decisions.map((decision) => (decision.kind === 'retry' ? decision.afterMs : decision.failure.code)),
    ).toEqual([5_000, 30_000, 'encoding_failed']);
    expect(decisions.at(-1)?.tries.failures).toBe(3);
    expect(decisions.at(-1)).toMatchObject({
      failure: { message: expect.stringMatching(/could not be encoded.+upload it again/) as unknown },
    });
  });

  it('sits out our own outages, a minute apart at most, and counts them against nobody', () => {
    const decisions = repeat({ kind: 'infrastructure', message: 'no store' }, 200);
    const waits = decisions.map((decision) => (decision.kind === 'retry' ? decision.afterMs : NaN));
    expect(waits.slice(0, 8)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    expect(Math.max(...waits)).toBe(60_000);
    expect(decisions.at(-1)?.tries).toMatchObject({ failures: 0, losses: 0 });
  });

  const day = 24 * 3_600_000;
  it.each([
    ['a day', 19, day, 'encoding_failed'],
    ['a week', 5_000, 7 * day, 'encoding_failed'],
    ['a moment less than a day', 5_000, day - 1, 'retry'],
    ['a day, most of it in the queue', 18, day, 'retry'],
  ])('ends an outage of ours that has lasted %s (%d tries before): %s ms', (_, waits, waitedMs, expected) => {
    const decision = decideTrouble(
      { ...fresh, waits, waitedMs },
      { kind: 'infrastructure', message: 'no store' },
    );
    expect(decision.kind === 'retry' ? 'retry' : decision.failure.code).toBe(expected);
    expect(decision.tries).toMatchObject({ waits: waits + 1, failures: 0, losses: 0 });
  });

  it('gives a full disk minutes to pass in each class, and counts it as a loss', () => {
    const decisions = repeat({ kind: 'room', message: 'No space left on device' }, 10);
    expect(
      decisions.map((decision) => [
        decision.kind === 'retry' ? decision.afterMs : decision.failure.code,
        decision.tries.class,
        decision.tries.losses,
      ]),
    ).toEqual([
      [60_000, 'standard', 1],
      [600_000, 'standard', 2],
      [0, 'large', 3],
      [60_000, 'large', 4],
      [600_000, 'large', 5],
      ['encoding_failed', 'large', 6],
    ]);
  });

  it('moves a task to the large class at its third loss and gives up at its sixth', () => {
    const decisions = repeat({ kind: 'lost', message: 'lease expired' }, 10);
    const waits = decisions.flatMap((decision) => (decision.kind === 'retry' ? [decision.afterMs] : []));
    expect(waits).toEqual([0, 0, 0, 0, 0]);
    expect(decisions.map(({ kind, tries }) => [kind, tries.class])).toEqual([
      ['retry', 'standard'],
      ['retry', 'standard'],
      ['retry', 'large'],
      ['retry', 'large'],
      ['retry', 'large'],
      ['fail', 'large'],
    ]);
  });

  it.each([
    [{ kind: 'encoding', message: '' }, 'the work failed each time.'],
    [
      { kind: 'encoding', message: '', scarce: true },
      'the work needed more memory, disk or time than there is.',
    ],
    [{ kind: 'infrastructure', message: '' }, 'the work met an outage of ours that has lasted a day.'],
    [{ kind: 'lost', message: '' }, 'the work needed more memory, disk or time than there is.'],
  ] as const)('says why it gave up after %j', (trouble, why) => {
    const tried = { ...fresh, failures: 2, losses: 5, waits: 19, waitedMs: 24 * 3_600_000 };
    const decision = decideTrouble(tried, trouble);
    expect(decision.kind === 'fail' && decision.failure.message).toContain(why);
  });

  it('starts the waits of an outage anew after a trouble of another kind', () => {
    const waited = { ...fresh, waits: 5, waitedMs: 60_000 };
    for (const kind of ['lost', 'room', 'encoding'] as const) {
      expect(decideTrouble(waited, { kind, message: '' }).tries).toMatchObject({ waits: 0, waitedMs: 0 });
    }
  });
});
