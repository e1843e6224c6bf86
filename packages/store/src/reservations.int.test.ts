import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type FailureCode } from '@millrace/contract';
import { type VideoTrigger } from '@millrace/domain';
import { silentLogger } from '@millrace/platform';
import {
  createTestDatabase,
  seedAccount,
  type SeededAccount,
  seedProcessingVideo,
  type TestDatabase,
} from '@millrace/testing';
import { createDatabase, type Database, lockUsage, moveVideo } from './index.ts';
import { reserveEncode } from './usage.ts';

let testDatabase: TestDatabase;
let db: Database;
let account: SeededAccount;
let videoId: string;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  db = createDatabase({ connectionString: testDatabase.connectionString, logger: silentLogger });
});
afterAll(async () => {
  await db.close();
  await testDatabase.drop();
});
beforeEach(async () => {
  account = await seedAccount(db);
  videoId = await seedProcessingVideo(db, account);
  await db.transaction(async (tx) => {
    const usage = await lockUsage(tx, account.accountId);
    await reserveEncode(tx, usage, { videoId, durationMs: 7_000 });
  });
});

const move = (trigger: VideoTrigger): Promise<unknown> =>
  db.transaction((tx) => moveVideo(tx, videoId, trigger));
const failed = (code: FailureCode): VideoTrigger => ({
  type: 'encoding_failed',
  failure: { code, message: 'It failed.' },
});
async function used(): Promise<{ stored: number; upload: number } | undefined> {
  const { rows } = await db.query<{ stored: number; upload: number }>(
    'select stored_ms as stored, upload_ms as upload from usage where account_id = $1',
    [account.accountId],
  );
  return rows[0];
}

describe('what a video holds of the limits', () => {
  it('is stored seconds while it is processing, ready or held, and upload seconds for the period [LIM-106, LIM-107]', async () => {
    expect(await used()).toEqual({ stored: 7_000, upload: 7_000 });
    await move({ type: 'encoding_finished' });
    await move({ type: 'hold_placed', legal: false, reason: null });
    expect(await used()).toEqual({ stored: 7_000, upload: 7_000 });
    await move({ type: 'customer_delete' });
    expect(await used()).toEqual({ stored: 0, upload: 7_000 });
  });

  it.each(['invalid_file', 'unsupported_codec', 'no_video_track', 'plan_limit_reached'] as const)(
    'frees the stored seconds only when it fails with %s [LIM-105]',
    async (code) => {
      await move(failed(code));
      expect(await used()).toEqual({ stored: 0, upload: 7_000 });
    },
  );

  it('frees both when encoding failed by our fault, once, also when it is deleted after [LIM-105]', async () => {
    await move(failed('encoding_failed'));
    expect(await used()).toEqual({ stored: 0, upload: 0 });
    await move({ type: 'customer_delete' });
    expect(await used()).toEqual({ stored: 0, upload: 0 });
  });

  it('gives no upload seconds back into another period', async () => {
    await db.query(
      `update usage set period_start = period_start + interval '1 month', upload_ms = 9000 where account_id = $1`,
      [account.accountId],
    );
    await move(failed('encoding_failed'));
    expect(await used()).toEqual({ stored: 0, upload: 9_000 });
  });
});
