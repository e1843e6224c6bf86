import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createMetrics, silentLogger } from '@millrace/platform';
import { createDatabase, type Database, pauseEncoding } from '@millrace/store';
import { createManualClock, createTestDatabase } from '@millrace/testing';
import { waitingLoop } from './waiting.ts';

describe('what waits in the record', () => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>;
  let store: Database;
  beforeAll(async () => {
    database = await createTestDatabase();
    store = createDatabase({ connectionString: database.connectionString, logger: silentLogger });
    await store.query(`insert into accounts (id, name, plan_id, anchor_day, created_at, updated_at)
      values ('acc_1', 'A', 'free', 1, now(), now())`);
    await store.query(`insert into projects (id, account_id, name, created_at, updated_at)
      values ('prj_1', 'acc_1', 'P', now(), now())`);
    await store.query(`insert into videos (id, project_id, account_id, title, status, size_bytes, created_at, updated_at)
      values ('vid_1', 'prj_1', 'acc_1', 'T', 'processing', 1, now(), now())`);
    await store.query(`insert into encode_jobs (id, video_id, account_id, created_at)
      select 'job_' || n, 'vid_1', 'acc_1', now() from generate_series(1, 3) as n`);
  });
  afterAll(async () => {
    await store.close();
    await database.drop();
  });
  beforeEach(async () => {
    for (const table of ['encode_tasks', 'encode_pauses', 'outbox'])
      await store.query(`delete from ${table}`);
  });

  const queue = (id: string, taskClass: string, dueSecondsAgo: number, jobId = 'job_1'): Promise<unknown> =>
    store.query(
      `insert into encode_tasks (id, job_id, video_id, account_id, kind, index, class, run_after, created_at)
       values ($1, $5, 'vid_1', 'acc_1', 'video', $4, $2, now() - $3 * interval '1 second', now())`,
      [id, taskClass, dueSecondsAgo, Number(id.slice(4)), jobId],
    );

  /** Runs the loop once and returns what it shows, then what it shows after its end. */
  async function look(): Promise<{ value: (series: string) => number; after: string }> {
    const metrics = createMetrics({ service: 'reconciler' });
    const stop = new AbortController();
    let text = '';
    const loop = waitingLoop({ store, clock: createManualClock(), metrics });
    const { promise: looked, resolve } = Promise.withResolvers<undefined>();
    const running = loop.run(stop.signal, () => resolve(undefined));
    await looked;
    text = await metrics.render();
    stop.abort();
    await running;
    const value = (series: string): number => {
      const line = text.split('\n').find((each) => each.startsWith(`${series}service="reconciler"}`));
      return Number(line?.split(' ')[1]);
    };
    return { value, after: await metrics.render() };
  }

  const age = (name: string): string => `millrace_encode_oldest_queued_seconds{class="${name}",`;

  it('is told by class: how long the oldest task has been due', async () => {
    await queue('tsk_1', 'standard', 100);
    await queue('tsk_2', 'standard', 900);
    await queue('tsk_3', 'large', -60);
    const { value } = await look();
    expect(value(age('standard'))).toBeGreaterThanOrEqual(900);
    expect(value(age('standard'))).toBeLessThan(10_000);
    expect(value(age('large'))).toBe(0);
  });

  it.each([
    ['everything', { scope: 'all' } as const],
    ['its class', { scope: 'class', class: 'standard' } as const],
    ['its account', { scope: 'account', accountId: 'acc_1' } as const],
  ])('leaves out what waits since the team paused %s', async (_what, pause) => {
    await queue('tsk_1', 'standard', 900);
    await store.transaction((tx) => pauseEncoding(tx, { pause, reason: null, actor: 'test' }));
    const { value, after } = await look();
    expect(value(age('standard'))).toBe(0);
    const pauses = (scope: string): number => value(`millrace_encode_pauses{scope="${scope}",`);
    expect(['all', 'class', 'account'].filter((scope) => pauses(scope) === 1)).toEqual([pause.scope]);
    expect(after).not.toContain('millrace_encode_pauses{');
  });

  it('leaves out what its account brings beyond the jobs at once of its plan, until its turn comes', async () => {
    for (const n of [1, 2, 3]) await queue(`tsk_${n}`, 'standard', 900, `job_${n}`);
    await store.query(`update encode_tasks set status = 'processing' where id <> 'tsk_3'`);
    expect((await look()).value(age('standard'))).toBe(0);
    await store.query(`update encode_tasks set status = 'done' where id = 'tsk_1'`);
    await store.query(`update encode_jobs set state = 'succeeded', finished_at = now() - interval '100 s'
      where id = 'job_1'`);
    const { value } = await look();
    expect(value(age('standard'))).toBeGreaterThanOrEqual(100);
    expect(value(age('standard'))).toBeLessThan(900);
    await store.query(`update encode_jobs set state = 'running', finished_at = null`);
  });

  it('has the outbox, waiting and parked, and is forgotten by one who leads no longer', async () => {
    await store.query(`insert into outbox (topic, key, version, value, created_at, parked_at) values
      ('t', 'a', 1, '{}', now() - interval '50 seconds', null), ('t', 'b', 1, '{}', now(), null),
      ('t', 'c', 1, '{}', now() - interval '900 seconds', now())`);
    const { value, after } = await look();
    expect(value('millrace_outbox_rows{state="waiting",')).toBe(2);
    expect(value('millrace_outbox_rows{state="parked",')).toBe(1);
    expect(value('millrace_outbox_oldest_seconds{')).toBeGreaterThanOrEqual(50);
    expect(value('millrace_outbox_oldest_seconds{')).toBeLessThan(800);
    expect(after).not.toMatch(/millrace_outbox_oldest_seconds\{/);
    expect(after).not.toContain('state="parked"');
  });
});
