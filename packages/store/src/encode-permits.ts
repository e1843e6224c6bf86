import { topics } from '@millrace/contract';
import { type TaskClass } from '@millrace/domain';
import { type Database, type Transaction } from './db.ts';
import { addToOutbox, type OutboxMessage } from './outbox.ts';

export type TaskKind = 'plan' | 'video' | 'audio' | 'images' | 'assemble' | 'poster';

/**
 * Below the encodes in an account's queue: either is found without reading the other, however long it is. It says
 * nothing about who goes first.
 */
export const posterPriority = -1;

/** The message that lets an encoder look for work; what it claims is the record's choice. */
export const permit = (
  task: { id: string; kind: TaskKind },
  version: number,
  headers: Record<string, string> = {},
): OutboxMessage => ({
  topic: topics.encodeTasks.name,
  key: task.id,
  version,
  value: { v: 1, taskId: task.id, kind: task.kind },
  headers,
});

/** Held by each claim until its transaction ends; the number is any constant. */
export const lockClaims = 'pg_advisory_xact_lock(7261004)';

/** In SQL: whether the team holds the task `t` back. */
const pausedTask = `exists (select from encode_pauses e where e.scope = 'all'
  or e.scope = 'class' and e.subject = t.class or e.scope = 'account' and e.subject = t.account_id)`;

/**
 * Publishes permits again for tasks that have been due for long, the oldest first, unless a permit of theirs
 * still waits in the outbox or the team holds them back. For the reconciler: a permit may be lost, work may not.
 * @returns how many were published
 */
export const republishQueued = (
  db: Database,
  { olderThanMs, limit }: { olderThanMs: number; limit: number },
): Promise<number> => db.transaction((tx) => publishQueued(tx, { olderThanMs, limit }));

/** Publishes permits for tasks that are due, of a class or an account where one is named. */
export async function publishQueued(
  tx: Transaction,
  {
    olderThanMs,
    limit,
    class: taskClass = null,
    accountId = null,
  }: { olderThanMs: number; limit: number; class?: TaskClass | null; accountId?: string | null },
): Promise<number> {
  const { rows } = await tx.query<{ id: string; kind: TaskKind; fence: number }>(
    `select t.id, t.kind, t.fence from encode_tasks t
     where t.status = 'queued' and t.run_after <= clock_timestamp() - $1 * interval '1 millisecond'
       and ($4::text is null or t.class = $4) and ($5::text is null or t.account_id = $5)
       and not ${pausedTask}
       and not exists (select from outbox o where o.topic = $3 and o.key = t.id and o.parked_at is null)
     order by t.run_after limit $2`,
    [olderThanMs, limit, topics.encodeTasks.name, taskClass, accountId],
    'task-overdue',
  );
  await addToOutbox(
    tx,
    rows.map((task) => permit(task, task.fence)),
  );
  return rows.length;
}
