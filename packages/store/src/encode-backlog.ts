import { type TaskClass } from '@millrace/domain';
import { type Queryable } from './db.ts';
import { pausedTask } from './encode-permits.ts';

/**
 * Work that encoders have before them, by class: the estimated CPU seconds of every task that waits or is under way.
 * Running work counts, so that nobody scales down the encoders that are busy with it; what is paused does not, since
 * more encoders would stand idle.
 */
export async function encodeBacklog(
  db: Queryable,
): Promise<readonly { class: TaskClass; seconds: number }[]> {
  const { rows } = await db.query<{ class: TaskClass; seconds: number }>(
    `select c.class, coalesce(sum(t.cost), 0)::float8 as seconds
     from unnest(array['standard', 'large']) as c (class)
     left join encode_tasks t on t.class = c.class
       and (t.status = 'processing' or t.status = 'queued' and not ${pausedTask})
     group by c.class order by c.class`,
    [],
    'encode-backlog',
  );
  return rows;
}
