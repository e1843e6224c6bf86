import { type AccountPlan, type PlanStatus, ProblemError, type Quality } from '@millrace/contract';
import { type Transaction } from './db.ts';
import { lockUsage } from './usage.ts';
import { limitingPlanId } from './plans.ts';

interface Row {
  planId: string;
  planName: string;
  status: PlanStatus;
  storedSeconds: number | null;
  uploadSeconds: number | null;
  watchedMinutes: number | null;
  domains: number | null;
  projects: number | null;
  maxQuality: Quality;
  whiteLabel: boolean;
  verifiedDomains: number;
}

/**
 * An account's plan, limits and use of them in the current period. Sums are exact in milliseconds and shown
 * floored; a canceled account has free's limits.
 * @throws ProblemError `not_found`
 */
export async function accountUsage(tx: Transaction, accountId: string): Promise<AccountPlan> {
  const { rows } = await tx.query<Row>(
    `select a.plan_id as "planId", own.name as "planName", a.plan_status as status,
       p.stored_seconds as "storedSeconds", p.upload_seconds_per_period as "uploadSeconds",
       p.watched_minutes_per_period as "watchedMinutes", p.verified_domains as domains, p.projects,
       p.max_quality as "maxQuality", p.white_label as "whiteLabel",
       (select count(*) from domains d where d.account_id = a.id and d.status = 'verified') as "verifiedDomains"
     from accounts a
     join plans own on own.id = a.plan_id
     join plans p on p.id = ${limitingPlanId}
     where a.id = $1`,
    [accountId],
  );
  const row = rows[0];
  if (!row) throw new ProblemError('not_found');
  const used = await lockUsage(tx, accountId);
  const watchedMinutes = Math.floor(used.watchedMs / 60_000);
  return {
    plan: { id: row.planId, name: row.planName },
    status: row.status,
    currentPeriod: { start: used.periodStart.toISOString(), end: used.periodEnd.toISOString() },
    limits: {
      storedSeconds: row.storedSeconds,
      uploadSecondsPerPeriod: row.uploadSeconds,
      watchedMinutesPerPeriod: row.watchedMinutes,
      verifiedDomains: row.domains,
      projects: row.projects,
      maxQuality: row.maxQuality,
      whiteLabel: row.whiteLabel,
    },
    usage: {
      storedSeconds: Math.floor(used.storedMs / 1_000),
      watchedMinutes,
      verifiedDomains: row.verifiedDomains,
      overageMinutes: row.watchedMinutes === null ? 0 : Math.max(0, watchedMinutes - row.watchedMinutes),
    },
  };
}
