import { beforeEach, describe, expect, it } from '@jest/globals';
import { type FailureCode } from '@millrace/contract';
import { type VideoTrigger } from '@millrace/domain';
import { seedAccount, type SeededAccount, seedProcessingVideo } from '@millrace/testing';
import { moveVideo } from './index.ts';
import { db, useDatabase } from './testing/database.ts';
import { reserve, usageOf } from './testing/usage.ts';

let account: SeededAccount;
let videoId: string;

useDatabase();
beforeEach(async () => {
  account = await seedAccount(db);
  videoId = await seedProcessingVideo(db, account);
  await reserve(account.accountId, { videoId, durationMs: 7_000 });
});

const move = (trigger: VideoTrigger): Promise<unknown> =>
  db.transaction((tx) => moveVideo(tx, videoId, trigger));
const failed = (code: FailureCode): VideoTrigger => ({
  type: 'encoding_failed',
  failure: { code, message: 'It failed.' },
});
const used = () => usageOf(account.accountId);

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
