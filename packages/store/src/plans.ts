import { ProblemError, type Quality } from '@millrace/contract';
import { type Queryable, type Transaction } from './db.ts';

/** What a plan allows. null means no limit. */
export interface Plan {
  id: string;
  name: string;
  verifiedDomains: number | null;
  projects: number | null;
  maxQuality: Quality;
  whiteLabel: boolean;
  /** Of one original, in bytes. */
  maxFileBytes: number;
  /** Of one source, in seconds. */
  maxSourceSeconds: number;
}

/** Columns that `planOf` reads, for statements that join `plans pl`. */
export const planColumns = `pl.id as "plId", pl.name as "plName", pl.verified_domains as "plVerifiedDomains",
  pl.projects as "plProjects", pl.max_quality as "plMaxQuality", pl.white_label as "plWhiteLabel",
  pl.max_file_bytes as "plMaxFileBytes", pl.max_source_seconds as "plMaxSourceSeconds"`;

/** The plan whose limits an account `a` has: `canceled` has free's (contract ACC-103). */
export const limitingPlanId = `case when a.plan_status = 'canceled' then 'free' else a.plan_id end`;

/** Joins an account `a` to the plan whose limits it has. */
export const joinPlan = `join plans pl on pl.id = ${limitingPlanId}`;

export interface PlanColumns {
  plId: string;
  plName: string;
  plVerifiedDomains: number | null;
  plProjects: number | null;
  plMaxQuality: Quality;
  plWhiteLabel: boolean;
  plMaxFileBytes: number;
  plMaxSourceSeconds: number;
}

export const planOf = (row: PlanColumns): Plan => ({
  id: row.plId,
  name: row.plName,
  verifiedDomains: row.plVerifiedDomains,
  projects: row.plProjects,
  maxQuality: row.plMaxQuality,
  whiteLabel: row.plWhiteLabel,
  maxFileBytes: row.plMaxFileBytes,
  maxSourceSeconds: row.plMaxSourceSeconds,
});

/** The plan whose limits an account has now; read under `lockUsage` where something is counted against it. */
export async function planOfAccount(db: Queryable, accountId: string): Promise<Plan> {
  const { rows } = await db.query<PlanColumns>(
    `select ${planColumns} from accounts a ${joinPlan} where a.id = $1`,
    [accountId],
    'plan-of-account',
  );
  const row = rows[0];
  if (row === undefined) throw new ProblemError('not_found');
  return planOf(row);
}

/**
 * Refuses one more of something when `used` has reached the limit.
 * @throws ProblemError `plan_limit_reached`
 */
export function assertBelow(limit: number | null, used: number, what: string): void {
  if (limit === null || used < limit) return;
  throw new ProblemError('plan_limit_reached', { detail: `The plan allows ${limit} ${what}.` });
}

/** How many rows a statement counts; it must answer `count`. */
export async function count(tx: Transaction, text: string, values: readonly unknown[]): Promise<number> {
  const { rows } = await tx.query<{ count: number }>(text, values);
  return rows[0]?.count ?? 0;
}
