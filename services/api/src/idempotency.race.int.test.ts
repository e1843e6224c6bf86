import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Clock } from '@millrace/platform';
import { raceRounds } from '@millrace/testing';
import { idempotently, type IdempotentCall } from './idempotency.ts';
import { createTenant, createTestApi, type Tenant, type TestApi } from './testing/test-api.ts';

/** Requests with one `Idempotency-Key` at the same time, 200 times. */

let api: TestApi;
let me: Tenant;
/** Twins ask again as soon as others have had their turn. */
let clock: Clock;
beforeAll(async () => {
  api = await createTestApi();
  me = await createTenant(api);
  clock = { now: api.now, sleep: () => new Promise((resolve) => setImmediate(resolve)) };
});
afterAll(() => api.close());

interface Sent {
  key: string;
  body?: string;
  /** Fails after its work, which is rolled back. */
  fails?: boolean;
}
/** Works in the record once for a key, as a create does. @returns what happened, and the number of the work */
async function send({ key, body = 'a', fails = false }: Sent): Promise<string> {
  const headers = new Map<string, string>();
  const call: IdempotentCall = {
    ...{ method: 'POST', path: '/v1/things', json: { body } },
    headers: { 'idempotency-key': key },
    signal: new AbortController().signal,
    setHeader: (name, value) => headers.set(name, value),
  };
  const work = {
    run: (
      keep: (
        tx: Parameters<Parameters<TestApi['store']['transaction']>[0]>[0],
        kept: string,
      ) => Promise<void>,
    ) =>
      api.store.transaction(async (tx) => {
        const { rows } = await tx.query<{ id: string }>(
          `insert into raced (key) values ($1) returning id::text as id`,
          [key],
        );
        const id = rows[0]?.id ?? '';
        await keep(tx, id);
        if (fails) throw Object.assign(new Error('no'), { code: 'failed' });
        return id;
      }),
    replay: (kept: string) => Promise.resolve(kept),
  };
  try {
    const id = await idempotently(
      { store: api.store, clock },
      { accountId: me.accountId, call, status: 201 },
      work,
    );
    return `${headers.has('Idempotency-Replayed') ? 'replayed' : 'ran'} ${id}`;
  } catch (error) {
    const { code, status } = error as { code?: string; status?: number };
    if (code === undefined) throw error;
    return status === undefined ? code : `${status} ${code}`;
  }
}
const made = async (key: string): Promise<string[]> => {
  const { rows } = await api.store.query<{ id: string }>('select id::text as id from raced where key = $1', [
    key,
  ]);
  return rows.map(({ id }) => id);
};
const atOnce = async (...all: Sent[]): Promise<string[]> => (await Promise.all(all.map(send))).sort();

describe('one Idempotency-Key at once, 200 times', () => {
  beforeAll(() =>
    api.store.query('create table raced (id bigint generated always as identity, key text not null)'),
  );

  it('runs once, and its twins get that answer [IDK-001, IDK-006]', async () => {
    for (let round = 0; round < raceRounds; round++) {
      const key = `twins ${round}`;
      const outcomes = await atOnce({ key }, { key }, { key });
      const [id = ''] = await made(key);
      expect(await made(key)).toHaveLength(1);
      expect(outcomes).toEqual([`ran ${id}`, `replayed ${id}`, `replayed ${id}`]);
    }
  });

  it('is for one of two bodies: the other is 422 [IDK-004]', async () => {
    for (let round = 0; round < raceRounds; round++) {
      const key = `bodies ${round}`;
      const outcomes = await atOnce({ key, body: 'a' }, { key, body: 'b' });
      expect(outcomes).toEqual(['422 invalid_request', `ran ${(await made(key)).join()}`]);
    }
  });

  it('that fails is run anew by one of its twins [IDK-007]', async () => {
    for (let round = 0; round < raceRounds; round++) {
      const key = `failing ${round}`;
      const outcomes = await atOnce({ key, fails: true }, { key }, { key });
      const [id = ''] = await made(key);
      expect(await made(key)).toHaveLength(1);
      const own = outcomes.filter((outcome) => outcome !== 'failed');
      expect(own.slice(0, 2)).toEqual([`ran ${id}`, `replayed ${id}`]);
      // When a twin was first, the failing one hears its answer instead.
      expect(own[2] ?? `replayed ${id}`).toBe(`replayed ${id}`);
    }
  });
});
