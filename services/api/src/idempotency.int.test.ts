import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type Clock, systemClock } from '@millrace/platform';
import { type Transaction } from '@millrace/store';
import { idempotently, type IdempotentCall } from './idempotency.ts';
import { seedVideo } from './testing/seed-video.ts';
import {
  type Answer,
  type Ask,
  createTenant,
  createTestApi,
  type Tenant,
  type TestApi,
} from './testing/test-api.ts';

let api: TestApi;
let tenant: Tenant;
let clock: Clock;
beforeAll(async () => {
  api = await createTestApi();
  clock = { now: api.now, sleep: (ms, signal) => systemClock.sleep(ms, signal) };
});
afterAll(() => api.close());
beforeEach(async () => {
  tenant = await createTenant(api);
  runs = 0;
});

let runs = 0;
interface Kept {
  run: number;
}
type Work = (keep: (tx: Transaction, kept: Kept) => Promise<void>) => Promise<string>;
/** Works in the record, as a create does, and answers with the number of this run. */
const create: Work = async (keep) => {
  const run = ++runs;
  await api.store.transaction(async (tx) => {
    await tx.query('select pg_sleep(0.05)');
    await keep(tx, { run });
  });
  return `made ${run}`;
};

interface Sent {
  key?: string;
  body?: unknown;
  path?: string;
  method?: string;
  accountId?: string;
  signal?: AbortSignal;
}
async function send(sent: Sent, work = create): Promise<{ answer: string; replayed: boolean }> {
  const headers: Record<string, string> = {};
  const call: IdempotentCall = {
    headers: sent.key === undefined ? {} : { 'idempotency-key': sent.key },
    method: sent.method ?? 'POST',
    path: sent.path ?? '/v1/things',
    json: sent.body ?? { a: 1 },
    signal: sent.signal ?? new AbortController().signal,
    setHeader: (name, value) => {
      headers[name] = value;
    },
  };
  const answer = await idempotently(
    { store: api.store, clock },
    { accountId: sent.accountId ?? tenant.accountId, call, status: 201 },
    { run: work, replay: (kept: Kept) => Promise.resolve(`made ${kept.run}`) },
  );
  return { answer, replayed: headers['Idempotency-Replayed'] === 'true' };
}

it('runs every time without a key', async () => {
  expect(await send({})).toEqual({ answer: 'made 1', replayed: false });
  expect(await send({})).toEqual({ answer: 'made 2', replayed: false });
});

it('runs once for a key and replays the first answer [IDK-008]', async () => {
  expect(await send({ key: 'k' })).toEqual({ answer: 'made 1', replayed: false });
  expect(await send({ key: 'k' })).toEqual({ answer: 'made 1', replayed: true });
});

it('gives 20 twins at once one run and the same answer (h-api-03) [IDK-006]', async () => {
  const answers = await Promise.all(Array.from({ length: 20 }, () => send({ key: 'twins' })));
  expect(runs).toBe(1);
  expect(new Set(answers.map(({ answer }) => answer))).toEqual(new Set(['made 1']));
  expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1);
});

it.each<[string, Sent]>([
  ['account', { accountId: 'other' }],
  ['method', { method: 'PUT' }],
  ['path', { path: '/v1/others' }],
  ['key', { key: 'K' }],
])('keeps another %s apart [IDK-003]', async (_what, other) => {
  const accountId = other.accountId === undefined ? tenant.accountId : (await createTenant(api)).accountId;
  await send({ key: 'k' });
  expect(await send({ key: 'k', ...other, accountId })).toEqual({ answer: 'made 2', replayed: false });
});

it('compares bodies as JSON: order of fields does not count, that of lists does [IDK-004, IDK-005]', async () => {
  await send({ key: 'k', body: { a: 1, b: { c: [1, 2], d: null } } });
  const same = await send({ key: 'k', body: { b: { d: null, c: [1, 2] }, a: 1 } });
  expect(same.replayed).toBe(true);
  for (const body of [{ a: 1, b: { c: [2, 1], d: null } }, { a: '1', b: { c: [1, 2], d: null } }, { a: 1 }]) {
    await expect(send({ key: 'k', body })).rejects.toMatchObject({ code: 'invalid_request', status: 422 });
  }
});

it('is 422 for another body also while the first still runs', async () => {
  const first = send({ key: 'k' });
  await expect(
    (async () => {
      while (runs === 0) await new Promise(setImmediate);
      return send({ key: 'k', body: { b: 2 } });
    })(),
  ).rejects.toMatchObject({ status: 422 });
  await first;
});

it('keeps no failure: the next one runs, and a waiting twin too [IDK-007]', async () => {
  const failing: Work = async () => {
    await create(() => Promise.resolve());
    throw new Error('no');
  };
  const [first, twin] = await Promise.allSettled([send({ key: 'k' }, failing), send({ key: 'k' }, create)]);
  expect([first.status, twin.status].sort()).toContain('fulfilled');
  expect(await send({ key: 'k' })).toMatchObject({ replayed: true });
});

it('rolls back with its transaction: what failed after keeping is not kept', async () => {
  await expect(
    send({ key: 'k' }, (keep) =>
      api.store.transaction(async (tx) => {
        await keep(tx, { run: 99 });
        throw new Error('no');
      }),
    ),
  ).rejects.toThrow('no');
  expect(await send({ key: 'k' })).toEqual({ answer: 'made 1', replayed: false });
});

it('forgets after 24 hours [IDK-002]', async () => {
  await send({ key: 'k' });
  api.travel(24 * 3_600_000 - 1_000);
  expect((await send({ key: 'k' })).replayed).toBe(true);
  api.travel(1_000);
  expect((await send({ key: 'k' })).replayed).toBe(false);
});

describe('a twin of one that does not end', () => {
  /** A claim as a process leaves it that dies in the middle. */
  const hang = (): { release(): void; done: Promise<unknown> } => {
    const released = Promise.withResolvers<undefined>();
    const work: Work = async (keep) => {
      runs++;
      await released.promise;
      return create(keep);
    };
    return {
      release: () => released.resolve(undefined),
      done: send({ key: 'k' }, work).catch((e: unknown) => e),
    };
  };

  it('waits 30 seconds at most, and then is told to come back [IDK-006, IDK-013]', async () => {
    const hanging = hang();
    const impatient: Clock = {
      now: api.now,
      sleep: (ms) => {
        api.travel(ms * 100);
        return Promise.resolve();
      },
    };
    const [real, startedAt] = [clock, api.now().getTime()];
    clock = impatient;
    while (runs === 0) await new Promise(setImmediate);
    await expect(send({ key: 'k' })).rejects.toMatchObject({ code: 'service_unavailable', retryAfter: 1 });
    expect(api.now().getTime() - startedAt).toBeLessThan(45_000);
    clock = real;
    hanging.release();
    await hanging.done;
  });

  it('takes over what was abandoned, and the lost one can keep nothing', async () => {
    const hanging = hang();
    while (runs === 0) await new Promise(setImmediate);
    api.travel(90_000);
    expect(await send({ key: 'k' })).toMatchObject({ replayed: false });
    hanging.release();
    expect(await hanging.done).toMatchObject({
      message: expect.stringContaining('claim was lost') as unknown,
    });
    expect(await send({ key: 'k' })).toMatchObject({ answer: 'made 2', replayed: true });
  });

  it('may lose it to one that still runs, and then keeps nothing of its own', async () => {
    const lost = hang();
    while (runs === 0) await new Promise(setImmediate);
    api.travel(90_000);
    const taker = hang();
    while (runs === 1) await new Promise(setImmediate);
    lost.release();
    expect(await lost.done).toMatchObject({ message: expect.stringContaining('claim was lost') as unknown });
    taker.release();
    expect(await taker.done).toMatchObject({ replayed: false });
    expect(await send({ key: 'k' })).toMatchObject({ replayed: true });
  });

  it('ends when its client leaves', async () => {
    const hanging = hang();
    const leaving = new AbortController();
    while (runs === 0) await new Promise(setImmediate);
    const twin = send({ key: 'k', signal: leaving.signal });
    leaving.abort(new Error('left'));
    await expect(twin).rejects.toThrow('left');
    hanging.release();
    await hanging.done;
  });
});

it('is a bug, and gives the claim back, when the work keeps nothing', async () => {
  await expect(send({ key: 'k' }, () => Promise.resolve('made 0'))).rejects.toThrow('without keeping');
  expect(await send({ key: 'k' })).toEqual({ answer: 'made 1', replayed: false });
});

it.each(['', ' ', 'a\u0000', 'é', 'a\u007f', 'x'.repeat(256)])(
  'refuses the key %j [IDK-011]',
  async (key) => {
    const sent = send({ key: key === ' ' ? '' : key });
    await expect(sent).rejects.toMatchObject({
      code: 'invalid_request',
      status: 400,
      errors: [{ path: 'Idempotency-Key' }],
    });
    expect(runs).toBe(0);
  },
);

it('takes a key of 255 printable characters [IDK-011]', async () => {
  expect((await send({ key: '~ !'.repeat(85) })).replayed).toBe(false);
});

describe('over HTTP', () => {
  const report = async (tenant: Tenant, at = api) => {
    const videoId = await seedVideo(at.store, tenant);
    return (ask: Ask = { bearer: tenant.full }) =>
      at.ask(`POST /v1/projects/${tenant.projectId}/videos/${videoId}/reports`, {
        ...{ ...ask, body: { reason: 'Spam' }, headers: { 'idempotency-key': 'k' } },
      });
  };
  const outcome = ({ status, problem }: Answer): string =>
    status < 400 ? String(status) : `${status} ${problem.code}`;

  it('checks credentials and bans on a replay too [IDK-010]', async () => {
    const file = await report(tenant);
    expect(outcome(await file())).toBe('201');
    const replay = await file();
    expect([outcome(replay), replay.headers.get('idempotency-replayed')]).toEqual(['201', 'true']);
    expect(outcome(await file({ bearer: `${tenant.full}x` }))).toBe('401 unauthorized');
    expect(outcome(await file({ bearer: tenant.playback }))).toBe('403 insufficient_scope');
    await api.operator.banAccount({ accountId: tenant.accountId, banned: true });
    expect(outcome(await file())).toBe('403 account_banned');
    await api.operator.banAccount({ accountId: tenant.accountId, banned: false });
    await api.store.query('update api_keys set revoked_at = now() where project_id = $1', [tenant.projectId]);
    expect(outcome(await file())).toBe('401 unauthorized');
  });

  it('counts a replay as a request [IDK-010]', async () => {
    const limited = await createTestApi({ config: { API_RATE_PER_MINUTE: 2 } });
    try {
      // To the start of a window, which no test then leaves by itself.
      limited.travel(60_000 - (limited.now().getTime() % 60_000));
      const file = await report(await createTenant(limited), limited);
      const outcomes = [outcome(await file()), outcome(await file()), outcome(await file())];
      expect(outcomes).toEqual(['201', '201', '429 rate_limited']);
    } finally {
      await limited.close();
    }
  });

  it('ignores a key on a route that takes none, whatever it looks like [IDK-012]', async () => {
    const endpoint = (key: string): Promise<Answer<{ id: string }>> =>
      api.ask<{ id: string }>(`POST /v1/projects/${tenant.projectId}/webhook-endpoints`, {
        bearer: tenant.full,
        body: { url: 'https://hooks.example.com/in', events: ['video.ready'] },
        headers: { 'idempotency-key': key },
      });
    const [first, second, odd] = [await endpoint('k'), await endpoint('k'), await endpoint('x'.repeat(300))];
    expect([first, second, odd].map(outcome)).toEqual(['201', '201', '201']);
    expect(new Set([first, second, odd].map(({ body }) => body.id)).size).toBe(3);
  });
});
