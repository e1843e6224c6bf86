import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createMetrics, silentLogger, systemClock } from '@millrace/platform';
import { createDatabase, type Database, encodeBacklog } from '@millrace/store';
import { createTestDatabase, seedAccount, seedProcessingVideo } from '@millrace/testing';
import { backlogLoop } from './backlog.ts';

describe('the backlog of encoders', () => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>;
  let store: Database;
  let accountId: string;
  beforeAll(async () => {
    database = await createTestDatabase();
    store = createDatabase({ connectionString: database.connectionString, logger: silentLogger });
    const account = await seedAccount(store);
    accountId = account.accountId;
    const videoId = await seedProcessingVideo(store, account);
    await store.query(
      `insert into encode_jobs (id, video_id, account_id, created_at) values ('job_1', $1, $2, now())`,
      [videoId, account.accountId],
    );
    await store.query(
      `insert into encode_tasks (id, job_id, video_id, account_id, kind, index, class, status, cost,
         run_after, created_at)
       select 'tsk_' || n, 'job_1', $1, $2, 'video', n, class, status, cost, now(), now()
       from unnest($3::text[], $4::text[], $5::real[]) with ordinality as t (class, status, cost, n)`,
      [
        ...[videoId, account.accountId],
        ['standard', 'standard', 'standard', 'standard', 'large'],
        ['queued', 'queued', 'processing', 'done', 'processing'],
        [100, 20.5, 3, 1000, 40],
      ],
    );
  });
  afterAll(async () => {
    await store.close();
    await database.drop();
  });

  const read = async (): Promise<Record<string, number>> =>
    Object.fromEntries((await encodeBacklog(store)).map((each) => [each.class, each.seconds]));

  it('is what waits and what runs, by class', async () => {
    expect(await read()).toEqual({ standard: 123.5, large: 40 });
  });

  it('leaves out what is paused, but not what runs', async () => {
    const pause = (scope: string, subject: string): Promise<unknown> =>
      store.query(`insert into encode_pauses (scope, subject, paused_at) values ($1, $2, now())`, [
        ...[scope, subject],
      ]);
    await pause('class', 'large');
    expect(await read()).toEqual({ standard: 123.5, large: 40 });
    await pause('class', 'standard');
    expect(await read()).toEqual({ standard: 3, large: 40 });
    await store.query('delete from encode_pauses');
    await pause('all', '');
    expect(await read()).toEqual({ standard: 3, large: 40 });
    await store.query('delete from encode_pauses');
    await pause('account', accountId);
    expect(await read()).toEqual({ standard: 3, large: 40 });
    await store.query('delete from encode_pauses');
  });

  it('leaves out what its account brings beyond the jobs at once of its plan', async () => {
    const [{ videoId } = { videoId: '' }] = (
      await store.query<{ videoId: string }>('select id as "videoId" from videos')
    ).rows;
    await store.query(
      `insert into encode_jobs (id, video_id, account_id, created_at)
       select 'job_' || n, $1, $2, now() from generate_series(2, 4) as n`,
      [videoId, accountId],
    );
    await store.query(
      `insert into encode_tasks (id, job_id, video_id, account_id, kind, class, cost, run_after, created_at)
       select 'tsk_next' || n, 'job_' || n, $1, $2, 'plan', 'standard', 10 ^ n, now(), now()
       from generate_series(2, 4) as n`,
      [videoId, accountId],
    );
    const of = (planId: string): Promise<unknown> =>
      store.query('update accounts set plan_id = $2 where id = $1', [accountId, planId]);
    expect(await read()).toEqual({ standard: 11_223.5, large: 40 });
    await of('free');
    expect(await read()).toEqual({ standard: 223.5, large: 40 });
    await of('starter');
    expect(await read()).toEqual({ standard: 11_223.5, large: 40 });
    await store.query(`delete from encode_tasks where id like 'tsk_next%'`);
  });

  it('is shown while this process leads, and not after', async () => {
    const metrics = createMetrics({ service: 'reconciler' });
    const leads = new AbortController();
    const shown = Promise.withResolvers<undefined>();
    const loop = backlogLoop({ store, clock: systemClock, metrics });
    const running = loop.run(leads.signal, () => shown.resolve(undefined));
    await shown.promise;
    const lines = async (): Promise<string[]> =>
      (await metrics.render()).split('\n').filter((line) => line.startsWith('millrace_encode_backlog'));
    expect(await lines()).toEqual([
      'millrace_encode_backlog_seconds{class="large",service="reconciler"} 40',
      'millrace_encode_backlog_seconds{class="standard",service="reconciler"} 123.5',
    ]);
    leads.abort();
    await running;
    expect(await lines()).toEqual([]);
  });
});
