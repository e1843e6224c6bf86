import { type Quality } from '@millrace/contract';
import { writeAudit } from './audit.ts';
import { type Database, type Queryable, type Transaction } from './db.ts';
import { eachInTurn, eachOfPages } from './each.ts';
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
 * Tells the CDN what changed plans mean for their accounts, for all of them in one run.
 * @param options.limit how many accounts are looked up by one statement
 * @returns how many accounts were told of
 * @throws AggregateError when some could not be, after all the rest
 */
export async function announcePlans(
  db: Database,
  { signal, limit = 200 }: { signal?: AbortSignal; limit?: number } = {},
): Promise<number> {
  const { rows: changed } = await db.query<ChangedPlan>(
    'select id, revision from plans where announced_revision <> revision order by id',
    [],
    'plans-unannounced',
  );
  return eachInTurn(changed, (plan) => announcePlan(db, plan, { signal, limit }), { signal });
}

interface ChangedPlan {
  id: string;
  revision: number;
}
/** Accounts `a` that the CDN was not told of plan $1 at revision $2. */
const untold = `${limitingPlanId} = $1 and a.plan_revision <> $2`;
/** Accounts that are told of at once; each takes a connection. */
const atOnce = 4;

async function announcePlan(
  db: Database,
  { id, revision }: ChangedPlan,
  { signal, limit }: { signal: AbortSignal | undefined; limit: number },
): Promise<number> {
  const page = async (after: string): Promise<{ id: string }[]> => {
    const { rows } = await db.query<{ id: string }>(
      `select a.id from accounts a where ${untold} and a.id > $4 order by a.id limit $3`,
      [id, revision, limit, after],
      'plan-accounts-unannounced',
    );
    return rows;
  };
  const tell = (account: { id: string }): Promise<number> =>
    db.transaction(async (tx) => {
      await publishAccountState(tx, account.id);
      await tx.query('update accounts set plan_revision = $2 where id = $1', [account.id, revision]);
      return 1;
    });
  const told = await eachOfPages(page, tell, { atOnce, signal });
  // Whoever put an account on the plan at that very moment may have told the CDN of the old limits: such
  // transactions are over by then.
  await db.query(
    `update plans set announced_revision = $2
     where id = $1 and updated_at < clock_timestamp() - interval '1 minute'
       and not exists (select from accounts a where ${untold})`,
    [id, revision],
    'plan-announced',
  );
  return told;
}
