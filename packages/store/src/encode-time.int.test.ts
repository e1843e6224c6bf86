import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { silentLogger } from '@millrace/platform';
import {
  createTestDatabase,
  seedAccount,
  type SeededAccount,
  seedProcessingVideo,
  type TestDatabase,
} from '@millrace/testing';
import { createDatabase, type Database } from './db.ts';
import { encodeTime } from './encode-time.ts';

let database: TestDatabase;
let db: Database;
let account: SeededAccount;
beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ connectionString: database.connectionString, logger: silentLogger });
});
afterAll(async () => {
  await db.close();
  await database.drop();
});
beforeEach(async () => {
  account = await seedAccount(db);
  // Two jobs at once.
  await db.query(`update accounts set plan_id = 'free' where id = $1`, [account.accountId]);
});

let jobs = 0;
/** A job that was created and ended so many seconds after noon; null while it runs. */
async function job(created: number, finished: number | null, { isPoster = false } = {}): Promise<string> {
  const videoId = await seedProcessingVideo(db, account);
  const id = `job_${++jobs}`;
  await db.query(
    `insert into encode_jobs (id, video_id, account_id, is_poster, state, created_at, finished_at)
     values ($1, $2, $3, $4, $5, '2026-01-01T12:00:00Z'::timestamptz + $6 * interval '1 second',
       '2026-01-01T12:00:00Z'::timestamptz + $7 * interval '1 second')`,
    [
      id,
      videoId,
      account.accountId,
      isPoster,
      finished === null ? 'running' : 'succeeded',
      created,
      finished,
    ],
  );
  return id;
}
const timeOf = async (id: string): Promise<[number, number] | null> => {
  const time = await encodeTime(db, id);
  return time && [time.tookSeconds, time.turnSeconds];
};

it('is from the creation of the job while its account runs fewer than its plan lets it', async () => {
  await job(0, 50);
  expect(await timeOf(await job(10, 70))).toEqual([60, 60]);
});

it('of what an account brings beyond that, the turn is from when those before it left it a place', async () => {
  await job(0, 50);
  await job(1, 40);
  await job(80, null);
  await job(80, null);
  // The second left its place to the third, and the first to the fourth.
  expect(await timeOf(await job(2, 90))).toEqual([88, 50]);
  expect(await timeOf(await job(3, 95))).toEqual([92, 45]);
});

it('goes by videos that were before it, and by no poster, nor by what had ended', async () => {
  await job(0, 9);
  await job(1, 60, { isPoster: true });
  for (let posters = 0; posters < 2; posters++) await job(1, null, { isPoster: true });
  await job(2, 61);
  const third = await job(10, 70);
  await job(11, 65);
  await job(12, 66);
  expect(await timeOf(third)).toEqual([60, 60]);
  // The last ones before it ended at 66 and at 70; the posters still run.
  expect(await timeOf(await job(13, 80))).toEqual([67, 14]);
});

it('counts what still runs before it as what ends last', async () => {
  await job(0, null);
  await job(1, 40);
  await job(2, 50);
  expect(await timeOf(await job(3, 90))).toEqual([87, 40]);
  await job(2, null);
  // Both places are taken by jobs before it: the plan had more of them then.
  expect(await timeOf(await job(4, 91))).toEqual([87, 87]);
});

it('is null of a job that runs, or that there is not', async () => {
  expect(await timeOf(await job(0, null))).toBeNull();
  expect(await timeOf('job_none')).toBeNull();
});
