import { ProblemError, type Report } from '@millrace/contract';
import { newId } from '@millrace/domain';
import { type Transaction } from './db.ts';

/** @throws ProblemError `not_found` when the project has no such video */
export async function insertReport(
  tx: Transaction,
  input: { projectId: string; videoId: string; reason: string; detail: string | null },
): Promise<Report> {
  const { projectId, videoId, reason, detail } = input;
  const id = newId('rep');
  const { rowCount } = await tx.query(
    `insert into reports (id, video_id, account_id, reason, detail, created_at)
     select $1, v.id, v.account_id, $4, $5, date_trunc('milliseconds', clock_timestamp())
     from videos v where v.id = $2 and v.project_id = $3 and v.deleted_at is null`,
    [id, videoId, projectId, reason, detail],
  );
  if (rowCount === 0) throw new ProblemError('not_found');
  return { id, videoId, reason };
}
