import { type Queryable } from './db.ts';
import { limitingPlanId } from './plans.ts';

/** How long an encode took, by the record's clock, beside the length of its video; all in seconds. */
export interface EncodeTime {
  /** From the creation of its job: the upload was complete, or the team asked for another try. */
  tookSeconds: number;
  /**
   * From when the jobs of its account before it left it a place, of as many as its plan lets run at once: what an
   * account brings beyond those waits by the plan.
   */
  turnSeconds: number;
  durationSeconds: number;
}

/** Null when there is no such job, or it has not ended. */
export async function encodeTime(db: Queryable, jobId: string): Promise<EncodeTime | null> {
  const { rows } = await db.query<EncodeTime>(
    `select extract(epoch from j.finished_at - j.created_at)::float8 as "tookSeconds",
       extract(epoch from j.finished_at - greatest(j.created_at, turn.since))::float8 as "turnSeconds",
       coalesce(v.duration_ms, 0)::float8 / 1000 as "durationSeconds"
     from encode_jobs j
     join videos v on v.id = j.video_id
     join accounts a on a.id = j.account_id
     join plans p on p.id = ${limitingPlanId}
     cross join lateral (
       select p.encode_jobs - count(*) as places from encode_jobs e
       where e.account_id = j.account_id and e.state = 'running' and not e.is_poster and e.created_at < j.created_at
     ) free
     left join lateral (
       select e.finished_at as since from encode_jobs e
       where e.account_id = j.account_id and not e.is_poster and e.created_at < j.created_at
         and e.finished_at > j.created_at
       order by e.finished_at desc offset greatest(free.places - 1, 0) limit 1
     ) turn on free.places > 0
     where j.id = $1 and j.finished_at is not null`,
    [jobId],
    'encode-time',
  );
  return rows[0] ?? null;
}
