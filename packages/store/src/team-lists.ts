import { type Position } from '@millrace/domain';
import { type Queryable } from './db.ts';

/** What the operating team reads: pages, newest first. */
interface Page {
  limit: number;
  after: Position | null;
}

const keyset = (at: string, id: string): string =>
  `($1::timestamptz is null or (date_trunc('milliseconds', ${at}), ${id}) < ($1, $2))`;
const from = ({ limit, after }: Page): [Date | null, string, number] => [
  after?.createdAt ?? null,
  after?.id ?? '',
  limit,
];

export interface ReportRow extends Position {
  videoId: string;
  accountId: string;
  reason: string;
  detail: string | null;
}

export async function listReports(db: Queryable, page: Page): Promise<ReportRow[]> {
  const { rows } = await db.query<ReportRow>(
    `select id, video_id as "videoId", account_id as "accountId", reason, detail, created_at as "createdAt"
     from reports where ${keyset('created_at', 'id')} order by created_at desc, id desc limit $3`,
    from(page),
  );
  return rows;
}

export interface EncodeJobSummary extends Position {
  videoId: string;
  accountId: string;
  state: 'running' | 'succeeded' | 'failed' | 'cancelled';
  /** Tasks that are not done. */
  remaining: number;
  finishedAt: Date | null;
}

/** @param filter a state of jobs, or null for all */
export async function listEncodeJobs(
  db: Queryable,
  page: Page,
  filter: { state: EncodeJobSummary['state'] | null },
): Promise<EncodeJobSummary[]> {
  const { rows } = await db.query<EncodeJobSummary>(
    `select id, video_id as "videoId", account_id as "accountId", state, remaining,
       date_trunc('milliseconds', created_at) as "createdAt", finished_at as "finishedAt"
     from encode_jobs where ${keyset('created_at', 'id')} and ($4::text is null or state = $4)
     order by date_trunc('milliseconds', created_at) desc, id desc limit $3`,
    [...from(page), filter.state],
  );
  return rows;
}

export interface AuditRow extends Position {
  actor: string;
  action: string;
  subject: string;
  details: Record<string, unknown>;
}

/** @param filter what was acted on, or null for everything */
export async function listAudit(
  db: Queryable,
  page: Page,
  filter: { subject: string | null },
): Promise<AuditRow[]> {
  const { rows } = await db.query<AuditRow>(
    `select id, actor, action, subject, details, date_trunc('milliseconds', at) as "createdAt"
     from audit where ${keyset('at', 'id')} and ($4::text is null or subject = $4)
     order by date_trunc('milliseconds', at) desc, id desc limit $3`,
    [...from(page), filter.subject],
  );
  return rows;
}
