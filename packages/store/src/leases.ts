import { type Queryable } from './db.ts';

/**
 * Takes a lease, renews the holder's own, or takes over one that expired, all by database time.
 * Every change of holder raises the epoch, so that what an older holder still writes can be refused.
 *
 * @returns the epoch while `holder` has the lease, null while another has
 */
export async function acquireLease(
  db: Queryable,
  { name, holder, ttlMs }: { name: string; holder: string; ttlMs: number },
): Promise<number | null> {
  const { rows } = await db.query<{ epoch: number }>(
    `insert into leases as l (name, holder, epoch, expires_at)
     values ($1, $2, 1, clock_timestamp() + $3 * interval '1 millisecond')
     on conflict (name) do update set
       holder = excluded.holder, expires_at = excluded.expires_at,
       epoch = case when l.holder = excluded.holder then l.epoch else l.epoch + 1 end
       where l.holder = excluded.holder or l.expires_at <= clock_timestamp()
     returning epoch`,
    [name, holder, ttlMs],
    'lease-acquire',
  );
  return rows[0]?.epoch ?? null;
}

/** Gives a lease back at once, so that the next holder need not wait for its expiry. */
export async function releaseLease(
  db: Queryable,
  { name, holder }: { name: string; holder: string },
): Promise<void> {
  await db.query(
    'update leases set expires_at = clock_timestamp() where name = $1 and holder = $2',
    [name, holder],
    'lease-release',
  );
}
