import { type Transaction } from './db.ts';
import { attemptOf, type ClaimedTask } from './encode-claims.ts';
import { wantedTask } from './encode-wanted.ts';

/** What is added to a job's report, by key. */
export type Report = Record<string, unknown>;

/** Ends a task, guarded by its video's state, its job and fence; false when this attempt no longer has it. */
export async function endTask(tx: Transaction, task: ClaimedTask): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update encode_tasks t set status = 'done', lease_until = null, finished_at = clock_timestamp()
     where t.id = $1 and t.fence = $2 and t.status = 'processing'
       and exists (select from videos v where v.id = t.video_id and ${wantedTask})`,
    [task.id, task.fence],
    'task-end',
  );
  return rowCount > 0;
}

/** Whether this very attempt's result is in the record: its answer may have been lost. */
export async function isDone(tx: Transaction, task: ClaimedTask): Promise<boolean> {
  const { rowCount } = await tx.query(
    `select from encode_tasks where id = $1 and fence = $2 and status = 'done'`,
    [task.id, task.fence],
    'task-is-done',
  );
  return rowCount > 0;
}

/** Keeps the output of a task's winning attempt. */
export async function insertOutput(
  tx: Transaction,
  task: ClaimedTask,
  { prefix, output }: { prefix: string; output: object },
): Promise<void> {
  const { taskId, fence } = attemptOf(task);
  await tx.query(
    `insert into task_outputs (task_id, fence, prefix, output, created_at)
     values ($1, $2, $3, $4, clock_timestamp())`,
    [taskId, fence, prefix, JSON.stringify(output)],
    'task-output',
  );
}

export async function addToReport(tx: Transaction, jobId: string, report: Report): Promise<void> {
  await tx.query(
    'update encode_jobs set report = report || $2 where id = $1',
    [jobId, JSON.stringify(report)],
    'job-report',
  );
}

export async function endJob(tx: Transaction, jobId: string, state: 'succeeded' | 'failed'): Promise<void> {
  await tx.query(
    'update encode_jobs set state = $2, finished_at = clock_timestamp() where id = $1',
    [jobId, state],
    'job-end',
  );
}
