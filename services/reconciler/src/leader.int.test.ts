import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { silentLogger, systemClock } from '@millrace/platform';
import { createDatabase, type Database } from '@millrace/store';
import { createTestDatabase, waitFor } from '@millrace/testing';
import { lead } from './leader.ts';

describe('leadership', () => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>;
  let store: Database;
  beforeAll(async () => {
    database = await createTestDatabase();
    store = createDatabase({ connectionString: database.connectionString, logger: silentLogger });
  });
  afterAll(async () => {
    await store.close();
    await database.drop();
  });

  /** A candidate that records its terms. */
  function candidate(lease: string, holder: string, over: Partial<{ store: Database; ttlMs: number }> = {}) {
    const terms: { epoch: number; over: boolean }[] = [];
    const retire = new AbortController();
    const ended = lead(
      { store, clock: systemClock, logger: silentLogger, lease, holder, ttlMs: 300, ...over },
      async (epoch, signal) => {
        const term = { epoch, over: false };
        terms.push(term);
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
        term.over = true;
      },
      retire.signal,
    );
    return {
      terms,
      retire: async () => {
        retire.abort();
        await ended;
      },
    };
  }

  it('passes to another at once when the leader retires, with a higher epoch', async () => {
    const first = candidate('retire', 'first');
    await waitFor(() => first.terms.length === 1);
    const second = candidate('retire', 'second');
    await first.retire();
    expect(first.terms).toEqual([{ epoch: 1, over: true }]);
    await waitFor(() => second.terms.length === 1);
    expect(second.terms[0]?.epoch).toBe(2);
    await second.retire();
  });

  it('never has two leaders while both are well', async () => {
    const candidates = ['a', 'b', 'c'].map((holder) => candidate('single', holder));
    await waitFor(() => candidates.some((one) => one.terms.length > 0));
    expect(candidates.flatMap((one) => one.terms).filter((term) => !term.over)).toHaveLength(1);
    await Promise.all(candidates.map((one) => one.retire()));
  });

  it('ends its term when it cannot renew, before another may begin', async () => {
    let cut = false;
    const cuttable: Database = {
      ...store,
      query: (text, values, name) =>
        cut ? Promise.reject(new Error('cut off')) : store.query(text, values, name),
    };
    const leader = candidate('cut', 'leader', { store: cuttable });
    await waitFor(() => leader.terms.length === 1);
    cut = true;
    await waitFor(() => leader.terms[0]?.over === true);
    await leader.retire();
  });

  it('ends its term when another has taken the lease', async () => {
    const leader = candidate('taken', 'leader', { ttlMs: 1_000 });
    await waitFor(() => leader.terms.length === 1);
    await store.query(
      `update leases set holder = 'thief', epoch = epoch + 1, expires_at = now() + interval '1 hour' where name = 'taken'`,
    );
    await waitFor(() => leader.terms[0]?.over === true);
    await leader.retire();
  });
});
