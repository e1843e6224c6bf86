import { type TaskClass } from '@millrace/domain';
import { type Queryable } from './db.ts';

/**
 * Work that encoders have before them, by class: the estimated CPU seconds of every task that is under way or may be
 * claimed (the view `claimable_tasks`). Running work counts, so that nobody scales down the encoders that are busy with
 * it. What is paused, not due, or beyond its account's jobs at once does not: more encoders would stand idle.
 */
export async function encodeBacklog(
  db: Queryable,
): Promise<readonly { class: TaskClass; seconds: number }[]> {
  const { rows } = await db.query<{ class: TaskClass; seconds: number }>(
    `select c.class, coalesce(sum(t.cost), 0)::float8 as seconds
     from unnest(array['standard', 'large']) as c (class)
     left join (
       select class, cost from encode_tasks where status = 'processing'
       union all select class, cost from claimable_tasks
     ) t on t.class = c.class
     group by c.class order by c.class`,
    [],
    'encode-backlog',
  );
  return rows;
}
