import { readdir, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { waitFor } from '@millrace/testing';
import { kill, serviceOf } from './faults.ts';
import { type Theatre } from './theatre.ts';
import { type Time } from './time.ts';

const dayMs = 86_400_000;

/**
 * Lets the reconciler sweep as it does over two days: what was given up is purged, looked at again a day later and
 * forgotten, and uploads that the record does not know are aborted. Only what says how old things are is changed.
 * @throws when it is not done in time
 */
export async function sweep(theatre: Theatre, time: Time): Promise<void> {
  const { db, objects, stack, bucketFolder, killed } = theatre;
  const none = async (text: string): Promise<boolean> => (await db.query(text)).rowCount === 0;
  await waitFor(
    () => none('select from object_prefixes where delete_after is not null and purged_at is null'),
    { timeoutMs: time.leftMs(), what: 'the first look of the sweep' },
  );
  await age(join(bucketFolder, '.sgwtmp/multipart'), new Date(Date.now() - 2 * dayMs));
  // It looks for uploads of nobody once an hour, and when it starts.
  await kill({ killed, signal: time.signal }, serviceOf(stack, 'reconciler'));
  const isForgotten = async (): Promise<boolean> => {
    // Also of what the second look found something under, and looks at once more.
    await db.query(`update object_prefixes set purged_at = purged_at - interval '2 days'`);
    return none('select from object_prefixes where delete_after is not null');
  };
  await waitFor(isForgotten, { timeoutMs: time.leftMs(), what: 'the second look of the sweep' });
  await waitFor(() => none('select from videos where deleted_at is not null and purged_at is null'), {
    timeoutMs: time.leftMs(),
    what: 'the end of deleted videos',
  });
  await waitFor(async () => (await objects.listUploads()).items.length === 0, {
    timeoutMs: time.leftMs(),
    what: 'the end of uploads that nobody knows',
  });
}

/** The S3 server says that an upload began when its folder was changed. */
async function age(folder: string, to: Date): Promise<void> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  for (const name of names) await utimes(join(folder, name), to, to);
}
