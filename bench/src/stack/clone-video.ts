import { newId } from '@millrace/domain';
import { silentLogger } from '@millrace/platform';
import { createDatabase } from '@millrace/store';

/** Copies the row of a video that plays: enough to hold it and to tell of it, without encoding each. */
export async function cloneReadyVideo(
  connectionString: string,
  videoId: string,
  count: number,
): Promise<string[]> {
  const db = createDatabase({ connectionString, max: 1, logger: silentLogger });
  const ids = Array.from({ length: count }, () => newId('vid'));
  try {
    await db.query(
      `insert into videos (id, project_id, account_id, title, status, version, size_bytes, duration_ms, qualities,
         index_key, ready_at, created_at, updated_at)
       select new, project_id, account_id, title, status, version, size_bytes, duration_ms, qualities,
         index_key, ready_at, created_at, updated_at
       from videos, unnest($2::text[]) new where id = $1 and status = 'ready'`,
      [videoId, ids],
    );
    return ids;
  } finally {
    await db.close();
  }
}
