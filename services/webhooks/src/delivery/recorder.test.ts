import { describe, expect, it } from '@jest/globals';
import { silentLogger } from '@millrace/platform';
import { type AttemptResult, DatabaseUnavailableError } from '@millrace/store';
import { createManualClock, waitFor } from '@millrace/testing';
import { Recorder } from './recorder.ts';

const result = (claimId: string): AttemptResult => ({
  claim: { claimId, deliveryId: `del_${claimId}`, endpointId: 'whe_1', failures: 0 },
  ...{ status: 'delivered', lastStatus: 200, lastError: null, waitMs: null, durationMs: 1 },
});
const idsOf = (results: readonly AttemptResult[]): string[] => results.map(({ claim }) => claim.claimId);

function setUp(write: (ids: string[]) => Promise<void>) {
  const clock = createManualClock();
  const settled: string[] = [];
  const recorder = new Recorder({
    write: (results) => write(idsOf(results)),
    onSettled: (results) => settled.push(...idsOf(results)),
    clock,
    logger: silentLogger,
  });
  return { recorder, clock, settled };
}

describe('the recorder', () => {
  it('writes together what ends together, and what ends meanwhile next', async () => {
    const batches: string[][] = [];
    let release: () => void = () => undefined;
    const { recorder, settled } = setUp((ids) => {
      batches.push(ids);
      return new Promise((resolve) => (release = resolve));
    });
    recorder.add(result('1'));
    recorder.add(result('2'));
    await waitFor(() => batches.length === 1);
    recorder.add(result('3'));
    recorder.add(result('4'));
    expect(settled).toEqual([]);
    release();
    await waitFor(() => batches.length === 2);
    release();
    await waitFor(() => settled.length === 4);
    expect(batches).toEqual([
      ['1', '2'],
      ['3', '4'],
    ]);
  });

  it('keeps results while the record is away, says so, and writes them when it is back', async () => {
    let away = true;
    const { recorder, clock, settled } = setUp(() =>
      away ? Promise.reject(new DatabaseUnavailableError('away')) : Promise.resolve(),
    );
    recorder.add(result('1'));
    await clock.whenSleeping();
    expect(recorder.state).toBe('away');
    recorder.add(result('2'));
    away = false;
    await clock.advance(250);
    await waitFor(() => settled.length === 2);
    expect(recorder.state).toBe('ok');
  });

  it('gives up a result that the record refuses, alone', async () => {
    const { recorder, settled } = setUp((ids) =>
      ids.includes('2') ? Promise.reject(new Error('refused')) : Promise.resolve(),
    );
    for (const id of ['1', '2', '3']) recorder.add(result(id));
    await waitFor(() => settled.length === 3);
    expect(settled).toEqual(['1', '2', '3']);
    expect(recorder.state).toBe('ok');
  });

  it('waits for what is left when it closes, and not for ever', async () => {
    const { recorder, clock, settled } = setUp(() => Promise.reject(new DatabaseUnavailableError('away')));
    recorder.add(result('1'));
    await clock.whenSleeping();
    const closed = recorder.close(600);
    await clock.advance(600);
    await closed;
    expect(settled).toEqual([]);
  });
});
