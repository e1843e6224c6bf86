import { type Transaction } from './db.ts';

/** An account's recent work counts half after this long. */
export const shareHalfLifeSeconds = 600;

/**
 * Adds to the account's recent work what the attempt at a poster that ends now took beyond the estimate, which was
 * added when it was claimed. It takes a second, or minutes where the picture is hard to find; and since who asks for
 * posters may ask without end, what is not counted would be taken from others.
 */
export async function chargePoster(tx: Transaction, jobId: string): Promise<void> {
  await tx.query(
    `update encode_shares s set recent = s.recent
       + greatest(extract(epoch from clock_timestamp() - t.started_at) - t.cost, 0)
       * 2 ^ least(extract(epoch from clock_timestamp() - s.at) / $2, 60)
     from encode_tasks t where t.job_id = $1 and t.kind = 'poster' and s.account_id = t.account_id`,
    [jobId, shareHalfLifeSeconds],
    'poster-charge',
  );
}
