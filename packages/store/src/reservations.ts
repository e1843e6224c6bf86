import { type Transaction } from './db.ts';

/**
 * Gives back what a video holds of its account's limits, exactly once: stored seconds always, upload seconds
 * only for `encoding_failed` (our fault) and only within the period they were charged to.
 */
export async function releaseReservations(
  tx: Transaction,
  videoId: string,
  { refundUpload }: { refundUpload: boolean },
): Promise<void> {
  const { rows } = await tx.query<{
    kind: 'stored' | 'upload';
    accountId: string;
    amountMs: number;
    periodStart: Date;
  }>(
    `update usage_reservations set released_at = clock_timestamp()
     where video_id = $1 and released_at is null and (kind = 'stored' or $2)
     returning kind, account_id as "accountId", amount_ms as "amountMs", period_start as "periodStart"`,
    [videoId, refundUpload],
    'reservations-release',
  );
  for (const row of rows) {
    if (row.kind === 'stored') {
      await tx.query(
        'update usage set stored_ms = stored_ms - $2, updated_at = clock_timestamp() where account_id = $1',
        [row.accountId, row.amountMs],
        'usage-release-stored',
      );
    } else {
      await tx.query(
        `update usage set upload_ms = upload_ms - $2, updated_at = clock_timestamp()
         where account_id = $1 and period_start = $3`,
        [row.accountId, row.amountMs, row.periodStart],
        'usage-refund-upload',
      );
    }
  }
}
