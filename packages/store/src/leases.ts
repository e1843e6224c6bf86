import { type Queryable, type Transaction } from './db.ts';

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
    `with taken_from as (
       -- Waits for what the former holder commits by assertEpoch; a renewal waits for nobody.
       select name from leases where name = $1 and holder <> $2 and expires_at <= clock_timestamp() for update
     )
     insert into leases as l (name, holder, epoch, expires_at)
     select $1, $2, 1, clock_timestamp() + $3 * interval '1 millisecond' from (select count(*) from taken_from) waited
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

/** Another holder has the lease: what this one wanted to change is the other's to decide. */
export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError';
  readonly code = 'lease_lost';
}

/**
 * Keeps a transaction from committing what a former leader decided; to be called last in it. Nobody takes the lease over
 * before its end: its lock on the lease does not mind the leader's own renewals.
 * @throws LeaseLostError when the lease has another epoch by now
 */
export async function assertEpoch(
  tx: Transaction,
  { lease, epoch }: { lease: string; epoch: number },
): Promise<void> {
  const { rows } = await tx.query<{ epoch: number }>(
    'select epoch from leases where name = $1 for key share',
    [lease],
    'lease-epoch',
  );
  if (rows[0]?.epoch !== epoch)
    throw new LeaseLostError(`lease ${lease} is no longer that of epoch ${epoch}`);
}
