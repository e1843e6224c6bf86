import { banAccount } from './accounts.ts';
import { type Database, type Transaction } from './db.ts';
import { eachInTurn } from './each.ts';
import { createHoldCommands, type HoldReference } from './holds.ts';

/** The hold that a ban puts on a video of its account. */
const banHold = (videoId: string): HoldReference => ({ videoId, source: 'admin', reference: 'ban' });
const actor = 'reconciler';

/**
 * Makes holds match bans: videos of accounts that are banned with `holdVideos` are held, those of others are not by
 * a ban. Those of erased accounts are left alone: they are deleted, and play no more until they are. Safe to repeat; some
 * at a time.
 * @returns how many holds were placed or lifted
 */
export async function reconcileBanHolds(db: Database, limit = 200): Promise<number> {
  const holds = createHoldCommands(db);
  const { rows: missing } = await db.query<{ id: string; reason: string | null }>(
    `select v.id, a.ban_reason as reason from accounts a
     join videos v on v.account_id = a.id and v.deleted_at is null and v.status <> 'failed'
     where a.banned_at is not null and a.ban_holds_videos and a.erased_at is null and not exists (
       select from video_holds h
       where h.video_id = v.id and h.source = 'admin' and h.reference = 'ban' and h.lifted_at is null)
     limit $1`,
    [limit],
    'ban-holds-missing',
  );
  const { rows: surplus } = await db.query<{ id: string }>(
    `select v.id from video_holds h
     join videos v on v.id = h.video_id and v.deleted_at is null
     join accounts a on a.id = v.account_id
     where h.source = 'admin' and h.reference = 'ban' and h.lifted_at is null
       and not (a.banned_at is not null and a.ban_holds_videos) and a.erased_at is null
     limit $1`,
    [limit],
    'ban-holds-surplus',
  );
  const changes = [
    ...missing.map(
      ({ id, reason }) =>
        () =>
          holds.place({ ...banHold(id), reason, legal: false }, actor),
    ),
    ...surplus.map(
      ({ id }) =>
        () =>
          holds.lift(banHold(id), actor),
    ),
  ];
  return eachInTurn(changes, (change) => change().then(() => 1));
}

/**
 * Bans an account again whose record does not know the ban of which a hold comes back: without it the hold would be
 * lifted for want of one. Does nothing for other holds.
 */
export async function restoreBanOf(
  tx: Transaction,
  hold: HoldReference & { reason: string | null },
  { accountId, actor }: { accountId: string; actor: string },
): Promise<void> {
  const { source, reference } = banHold(hold.videoId);
  if (hold.source !== source || hold.reference !== reference) return;
  const { rowCount } = await tx.query(
    'select from accounts where id = $1 and banned_at is not null and ban_holds_videos',
    [accountId],
    'ban-holds-banned',
  );
  if (rowCount > 0) return;
  const reason = hold.reason === null ? {} : { reason: hold.reason };
  await banAccount(tx, { accountId, banned: true, holdVideos: true, actor, ...reason });
}
