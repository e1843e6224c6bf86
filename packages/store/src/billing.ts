import { type PlanResource, type Quality, type WhitelistEntry } from '@millrace/contract';
import { type Queryable } from './db.ts';

/** Plans with a price, the cheapest first (contract "Plan"). */
export async function listPaidPlans(db: Queryable): Promise<PlanResource[]> {
  const { rows } = await db.query<
    Omit<PlanResource['limits'], 'maxQuality'> & {
      id: string;
      name: string;
      amount: number;
      currency: string;
      interval: string;
      maxQuality: Quality;
    }
  >(
    `select id, name, price_amount as amount, price_currency as currency, price_interval as interval,
       stored_seconds as "storedSeconds", upload_seconds_per_period as "uploadSecondsPerPeriod",
       watched_minutes_per_period as "watchedMinutesPerPeriod", verified_domains as "verifiedDomains", projects,
       max_quality as "maxQuality", white_label as "whiteLabel"
     from plans where price_amount is not null order by price_amount, id`,
    [],
  );
  return rows.map(({ id, name, amount, currency, interval, ...limits }) => ({
    ...{ id, name, price: { amount, currency, interval }, limits },
  }));
}

interface WhitelistRow {
  planId: string;
  email: string;
  createdAt: Date;
}
const whitelistColumns = `plan_id as "planId", email, created_at as "createdAt"`;
const entryOf = ({ createdAt, ...row }: WhitelistRow): WhitelistEntry => ({
  ...row,
  createdAt: createdAt.toISOString(),
});

/** Notes that an account wants a plan; a repeat takes the new address and keeps the first time. */
export async function joinWhitelist(
  db: Queryable,
  { accountId, planId, email }: { accountId: string; planId: string; email: string },
): Promise<WhitelistEntry> {
  const { rows } = await db.query<WhitelistRow>(
    `insert into whitelist (account_id, plan_id, email, created_at)
     values ($1, $2, $3, date_trunc('milliseconds', clock_timestamp()))
     on conflict (account_id, plan_id) do update set email = excluded.email
     returning ${whitelistColumns}`,
    [accountId, planId, email],
  );
  const row = rows[0];
  if (row === undefined) throw new Error('a whitelist entry was not returned');
  return entryOf(row);
}

export async function listWhitelist(db: Queryable, accountId: string): Promise<WhitelistEntry[]> {
  const { rows } = await db.query<WhitelistRow>(
    `select ${whitelistColumns} from whitelist where account_id = $1 order by created_at, plan_id`,
    [accountId],
  );
  return rows.map(entryOf);
}

/**
 * Whether a payment is what an order would be (contract PLN-213): of an account that exists, for a plan that has a
 * price, and exactly that. Nothing is on sale yet, so no order says more.
 */
export async function isOrdered(
  db: Queryable,
  {
    accountId,
    planId,
    amount,
    currency,
  }: { accountId: string; planId: string; amount: number; currency: string },
): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from accounts a, plans p
     where a.id = $1 and p.id = $2 and p.price_amount = $3::bigint and p.price_currency = $4`,
    [accountId, planId, amount, currency],
  );
  return rowCount === 1;
}

/** Keeps what a payment provider reported. @returns false when it is on record already */
export async function keepBillingEvent(
  db: Queryable,
  { provider, eventId, body }: { provider: string; eventId: string; body: Buffer },
): Promise<boolean> {
  const { rowCount } = await db.query(
    `insert into billing_events (provider, event_id, body, created_at)
     values ($1, $2, $3, clock_timestamp()) on conflict do nothing`,
    [provider, eventId, body],
  );
  return rowCount === 1;
}
