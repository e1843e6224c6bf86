import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createMetrics, silentLogger } from '@millrace/platform';
import { createDatabase, type Database } from '@millrace/store';
import { captureLogger, createTestDatabase, seedAccount, seedProcessingVideo } from '@millrace/testing';
import { limitsLoops } from './limits.ts';

describe('the loop that puts usage right', () => {
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

  /** An account that has a video of unknown length, or whose sums are wrong. */
  async function account(length: unknown): Promise<string> {
    const seeded = await seedAccount(store);
    const videoId = await seedProcessingVideo(store, seeded);
    await store.query(
      `with job as (
         insert into encode_jobs (id, video_id, account_id, state, trace, manifest, created_at)
         values ('job_' || $1, $1, $2, 'running', '{}', $3, now()) returning id)
       update videos set current_job_id = job.id from job where videos.id = $1`,
      [videoId, seeded.accountId, { durationSeconds: length }],
    );
    return seeded.accountId;
  }

  it('counts and logs what it corrected, and what it could not, and goes on with the others', async () => {
    const [before, poison, behind] = [await account(1), await account('unknown'), await account(2)];
    const metrics = createMetrics({ service: 'reconciler' });
    const log = captureLogger();
    const loop = limitsLoops({ store, logger: log.logger, metrics }).find(
      ({ name }) => name === 'usage-drift',
    );
    // What is scraped less often Prometheus takes for gone: by then it has seen that nothing had drifted.
    expect(loop?.firstAfterMs).toBeGreaterThanOrEqual(300_000);
    let failed = 0;
    // Of each: its video's reservations and its sums, stored and uploaded.
    expect(await loop?.run(new AbortController().signal, () => failed++)).toBe(8);
    expect(failed).toBe(1);
    const shown = await metrics.render();
    for (const kind of ['stored', 'upload'])
      expect(shown).toContain(`millrace_usage_drift_total{kind="${kind}",service="reconciler"} 4\n`);
    const told = (message: string): unknown[] =>
      log.lines.filter((line) => line.message === message).map(({ fields }) => fields['accountId']);
    expect(told('usage corrected')).toEqual([before, behind].flatMap((id) => [id, id, id, id]));
    expect(told('not reconciled')).toHaveLength(1);
    expect(log.text()).toContain(`the usage of ${poison} could not be put right`);
  });
});
