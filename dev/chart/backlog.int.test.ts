import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { silentLogger } from '@millrace/platform';
import { createDatabase, type Database, encodeBacklog } from '@millrace/store';
import { createTestDatabase, seedAccount, seedProcessingVideo, type TestDatabase } from '@millrace/testing';
import { missingForClients } from '../kubernetes/clients.ts';
import { describeWith } from '../real-part.ts';
import { ofKind } from './objects.ts';
import { renderChart } from './render.ts';

interface ScaledObjectSpec {
  triggers: { metadata: { query: string } }[];
}

describeWith(missingForClients(), 'the query by which KEDA scales encoders', () => {
  let database: TestDatabase;
  let store: Database;
  let accountId: string;
  beforeAll(async () => {
    database = await createTestDatabase();
    store = createDatabase({ connectionString: database.connectionString, logger: silentLogger });
    const account = await seedAccount(store);
    accountId = account.accountId;
    const videoId = await seedProcessingVideo(store, account);
    await store.query(
      `insert into encode_jobs (id, video_id, account_id, created_at)
       values ('job_1', $1, $2, now()), ('job_2', $1, $2, now())`,
      [videoId, account.accountId],
    );
    const statuses = ['queued', 'processing', 'done', 'failed', 'cancelled'];
    const rows = ['standard', 'large'].flatMap((name) => statuses.map((status) => [name, status] as const));
    for (const [index, [name, status]] of rows.entries())
      await store.query(
        `insert into encode_tasks (id, job_id, video_id, account_id, kind, index, class, status, cost,
           run_after, created_at) values ('tsk_' || $5::integer, 'job_1', $1, $2, 'video', $5::integer, $3, $4, $6, now(), now())`,
        [videoId, account.accountId, name, status, index, 2 ** index],
      );
    // Beside the one that runs.
    await store.query(
      `insert into encode_tasks (id, job_id, video_id, account_id, kind, index, class, cost, run_after, created_at)
       values ('tsk_a', 'job_2', $1, $2, 'video', 0, 'standard', 2048, now(), now()),
         ('tsk_b', 'job_2', $1, $2, 'video', 1, 'large', 4096, now(), now())`,
      [videoId, account.accountId],
    );
  });
  afterAll(async () => {
    await store.close();
    await database.drop();
  });

  it.each([['standard'], ['large'], ['standard,large']])(
    'counts what the gauge shows, of the classes %s',
    async (names) => {
      const classes = names.split(',');
      const pool = {
        name: 'all',
        replicas: 0,
        maxReplicas: 2,
        slots: 1,
        scratchGiB: 1,
        gracePeriodSeconds: 60,
      };
      const resources = { requests: { cpu: '1', memory: '1Gi' }, limits: { memory: '1Gi' } };
      const pools = [
        { ...pool, resources, classes },
        { ...pool, name: 'others', resources, classes: ['standard', 'large'] },
      ];
      const set = [`encoder.pools=${JSON.stringify(pools)}`];
      const [scaled] = ofKind(await renderChart({ values: 'keda', set }), 'ScaledObject');
      const query = (scaled?.spec as ScaledObjectSpec).triggers[0]?.metadata.query ?? '';
      const expectSame = async (): Promise<number> => {
        const { rows } = await store.query<Record<string, number>>(query);
        const shown = (await encodeBacklog(store)).filter((each) => classes.includes(each.class));
        const sum = shown.reduce((total, { seconds }) => total + seconds, 0);
        expect(Object.values(rows[0] ?? {})).toEqual([sum]);
        return sum;
      };
      const all = await expectSame();
      const pauses = [
        ['all', ''],
        ['class', names.replace(/,.*/, '')],
        ['account', accountId],
      ];
      for (const pause of pauses) {
        await store.query(
          'insert into encode_pauses (scope, subject, paused_at) values ($1, $2, now())',
          pause,
        );
        expect(await expectSame()).toBeLessThan(all);
        await store.query('delete from encode_pauses');
      }
      // The account is at its jobs at once.
      await store.query(`update plans set encode_jobs = 1 where id = 'agency'`);
      expect(await expectSame()).toBeLessThan(all);
      await store.query(`update plans set encode_jobs = 64 where id = 'agency'`);
    },
  );
});
