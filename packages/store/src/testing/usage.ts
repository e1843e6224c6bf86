import { correctUsageDrift, type Database, lockUsage, type UsageDrift } from '../index.ts';
import { reserveEncode } from '../usage.ts';
import { db, one } from './database.ts';

/** Makes a video hold of its account's limits what its encode measured. */
export const reserve = (
  accountId: string,
  encode: { videoId: string; durationMs: number },
): Promise<unknown> =>
  db.transaction(async (tx) => reserveEncode(tx, await lockUsage(tx, accountId), encode));

/** What the videos of an account hold of its limits, in milliseconds. */
export const usageOf = (accountId: string): Promise<{ stored: number; upload: number }> =>
  one('select stored_ms as stored, upload_ms as upload from usage where account_id = $1', [accountId]);

/** Puts drifted usage right, and tells of all of it. @throws as it does */
export async function correctedDrifts(store: Database = db): Promise<UsageDrift[]> {
  const drifts: UsageDrift[] = [];
  await correctUsageDrift(store, { onDrift: (drift) => drifts.push(drift) });
  return drifts;
}
