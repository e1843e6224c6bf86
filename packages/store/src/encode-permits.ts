import { topics } from '@millrace/contract';
import { type Database } from './db.ts';
import { addToOutbox, type OutboxMessage } from './outbox.ts';

export type TaskKind = 'plan' | 'video' | 'audio' | 'images' | 'assemble' | 'poster';

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

/**
 * Publishes permits again for tasks that have been due for long, the oldest first, unless a permit of theirs
 * still waits in the outbox. For the reconciler: a permit may be lost, work may not.
 * @returns how many were published
 */
export const republishQueued = (
  db: Database,
  { olderThanMs, limit }: { olderThanMs: number; limit: number },
): Promise<number> =>
  db.transaction(async (tx) => {
    const { rows } = await tx.query<{ id: string; kind: TaskKind; fence: number }>(
      `select t.id, t.kind, t.fence from encode_tasks t
       where t.status = 'queued' and t.run_after < clock_timestamp() - $1 * interval '1 millisecond'
         and not exists (select from outbox o where o.topic = $3 and o.key = t.id and o.parked_at is null)
       order by t.run_after limit $2`,
      [olderThanMs, limit, topics.encodeTasks.name],
      'task-overdue',
    );
    await addToOutbox(
      tx,
      rows.map((task) => permit(task, task.fence)),
    );
    return rows.length;
  });
