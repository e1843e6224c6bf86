import { type TaskClass } from '@millrace/domain';
import { type Queryable } from './db.ts';

/**
 * For how long a task of each class could have been claimed and was not, at most, in seconds; 0 when there is none. What
 * is paused waits by the team's will and does not count; what an account brings beyond its plan's jobs at once counts
 * from when it came to be among them (the view `claimable_tasks`).
 */
export async function encodeQueueAges(
  db: Queryable,
): Promise<readonly { class: TaskClass; oldestSeconds: number }[]> {
  const { rows } = await db.query<{ class: TaskClass; oldestSeconds: number }>(
    `select c.class, greatest(0, coalesce(max(extract(epoch from clock_timestamp() - t.since)), 0))::float8
       as "oldestSeconds"
     from unnest(array['standard', 'large']) as c (class)
     left join claimable_tasks t on t.class = c.class
     group by c.class order by c.class`,
    [],
    'encode-queue-ages',
  );
  return rows;
}
