import { type Quality } from '@millrace/contract';
import { writeAudit } from './audit.ts';
import { type Database, type Queryable, type Transaction } from './db.ts';
import { eachInTurn } from './each.ts';
import { publishAccountState } from './playback-state.ts';
import { limitingPlanId } from './plans.ts';

/** All limits of a plan. null means no limit. */
export interface PlanLimits {
  name: string;
  storedSeconds: number | null;
  uploadSecondsPerPeriod: number | null;
  watchedMinutesPerPeriod: number | null;
  verifiedDomains: number | null;
  projects: number | null;
  maxQuality: Quality;
  whiteLabel: boolean;
  maxFileBytes: number;
  maxSourceSeconds: number;
  encodeJobs: number;
}

/** The Kubernetes object that a plan's limits come from. */
export interface PlanOwner {
  uid: string;
  generation: number;
  /** When the object was made. */
  createdAt: Date;
}

export interface RecordedPlan {
  limits: PlanLimits;
  /** Null while the limits are the shipped ones. */
  owner: PlanOwner | null;
  updatedAt: Date;
}

const columns = {
  name: 'name',
  storedSeconds: 'stored_seconds',
  uploadSecondsPerPeriod: 'upload_seconds_per_period',
  watchedMinutesPerPeriod: 'watched_minutes_per_period',
  verifiedDomains: 'verified_domains',
  projects: 'projects',
  maxQuality: 'max_quality',
  whiteLabel: 'white_label',
  maxFileBytes: 'max_file_bytes',
  maxSourceSeconds: 'max_source_seconds',
  encodeJobs: 'encode_jobs',
} as const satisfies Record<keyof PlanLimits, string>;
const keys = Object.keys(columns) as (keyof PlanLimits)[];

/** Null when there is no such plan. */
export async function readPlanLimits(db: Queryable, planId: string): Promise<RecordedPlan | null> {
  const selected = keys.map((key) => `${columns[key]} as "${key}"`).join(', ');
  const { rows } = await db.query<
    PlanLimits & { uid: string | null; generation: number; createdAt: Date; updatedAt: Date }
  >(
    `select ${selected}, source_uid as uid, source_generation as generation, source_created_at as "createdAt",
       updated_at as "updatedAt"
     from plans where id = $1`,
    [planId],
    'plan-limits',
  );
  const row = rows[0];
  if (row === undefined) return null;
  const { uid, generation, createdAt, updatedAt, ...limits } = row;
  return { limits, owner: uid === null ? null : { uid, generation, createdAt }, updatedAt };
}

/**
 * Gives a plan the limits of an object, which owns the plan from then on: neither an older generation of it nor an
 * object that was made before it changes anything. They hold for the next request of the API;
 * `announcePlans` tells the CDN.
 *
 * @returns whether they were taken
 */
export async function applyPlan(
  tx: Transaction,
  input: { planId: string; limits: PlanLimits; owner: PlanOwner; actor: string },
): Promise<boolean> {
  const { planId, limits, owner, actor } = input;
  const assignments = keys.map((key, index) => `${columns[key]} = $${index + 5}`).join(', ');
  const { rowCount } = await tx.query(
    `update plans set ${assignments}, source = 'kubernetes', source_uid = $2, source_generation = $3,
       source_created_at = $4, revision = revision + 1, updated_at = clock_timestamp()
     where id = $1 and (source_uid is null or (source_uid = $2 and source_generation <= $3)
       or (source_uid <> $2 and source_created_at <= $4))`,
    [planId, owner.uid, owner.generation, owner.createdAt, ...keys.map((key) => limits[key])],
    'plan-apply',
  );
  if (rowCount === 0) return false;
  await writeAudit(tx, { actor, action: 'plan.apply', subject: planId, details: { limits, owner } });
  return true;
}

/**
 * Tells the CDN what changed plans mean for their accounts, some accounts at a time.
 * @returns how many accounts were told of
 */
export async function announcePlans(db: Database, limit = 200): Promise<number> {
  const { rows: changed } = await db.query<{ id: string; revision: number }>(
    'select id, revision from plans where announced_revision <> revision order by id',
    [],
    'plans-unannounced',
  );
  let told = 0;
  for (const { id, revision } of changed) {
    const { rows: accounts } = await db.query<{ id: string }>(
      `select a.id from accounts a where ${limitingPlanId} = $1 and a.plan_revision <> $2 order by a.id limit $3`,
      [id, revision, limit],
      'plan-accounts-unannounced',
    );
    told += await eachInTurn(accounts, (account) =>
      db.transaction(async (tx) => {
        await publishAccountState(tx, account.id);
        await tx.query('update accounts set plan_revision = $2 where id = $1', [account.id, revision]);
        return 1;
      }),
    );
    if (accounts.length === limit) continue;
    // Whoever put an account on the plan at that very moment may have told the CDN of the old limits: such
    // transactions are over by then.
    await db.query(
      `update plans set announced_revision = $2
       where id = $1 and updated_at < clock_timestamp() - interval '1 minute'`,
      [id, revision],
      'plan-announced',
    );
  }
  return told;
}
