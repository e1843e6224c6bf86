import { banAccount } from './accounts.ts';
import { type Database, type Transaction } from './db.ts';
import { eachOfPages } from './each.ts';
import { type HoldReference, liftByActor, placeByActor } from './holds.ts';

/** The hold that a ban puts on a video of its account. */
const banHold = (videoId: string): HoldReference => ({ videoId, source: 'admin', reference: 'ban' });
const actor = 'reconciler';

const isHeld = `exists (select from video_holds h
  where h.video_id = v.id and h.source = 'admin' and h.reference = 'ban' and h.lifted_at is null)`;
const mustBeHeld = 'a.banned_at is not null and a.ban_holds_videos';
/** Videos `v` of accounts `a` whose hold does not match their ban; nothing is said of those of erased accounts. */
const missing = `v.deleted_at is null and v.status <> 'failed' and a.erased_at is null and ${mustBeHeld} and not ${isHeld}`;
const surplus = `v.deleted_at is null and a.erased_at is null and not (${mustBeHeld}) and ${isHeld}`;
/** Videos that are looked at at once; each takes a connection. */
const atOnce = 4;

/**
 * Makes holds match bans: videos of accounts that are banned with `holdVideos` are held, those of others are not by
 * a ban. Those of erased accounts are left alone: they are deleted, and play no more until they are. In one run, however
 * many there are: they must not play on until the next. Safe to repeat.
 * @param options.limit how many are looked up by one statement
 * @returns how many holds were placed or lifted
 * @throws AggregateError when some could not be, after all the rest
 */
export async function reconcileBanHolds(
  db: Database,
  { signal, limit = 200 }: { signal?: AbortSignal; limit?: number } = {},
): Promise<number> {
  const page = async (after: string): Promise<{ id: string }[]> => {
    const { rows } = await db.query<{ id: string }>(
      `(select v.id from accounts a join videos v on v.account_id = a.id
        where ${missing} and v.id > $2 order by v.id limit $1)
       union
       (select v.id from video_holds b join videos v on v.id = b.video_id join accounts a on a.id = v.account_id
        where b.source = 'admin' and b.reference = 'ban' and b.lifted_at is null
          and ${surplus} and v.id > $2 order by v.id limit $1)
       order by id limit $1`,
      [limit, after],
      'ban-holds-wrong',
    );
    return rows;
  };
  const settle = ({ id }: { id: string }): Promise<number> => db.transaction((tx) => settleBanHold(tx, id));
  return eachOfPages(page, settle, { atOnce, signal });
}

/** Looks again, under the account's lock: a ban that was lifted since the list was made places no hold. */
async function settleBanHold(tx: Transaction, videoId: string): Promise<number> {
  const { rows } = await tx.query<{ place: boolean; lift: boolean; reason: string | null }>(
    `select ${missing} as place, ${surplus} as lift, a.ban_reason as reason
     from videos v join accounts a on a.id = v.account_id where v.id = $1 for share of a`,
    [videoId],
    'ban-holds-look',
  );
  const [look] = rows;
  if (look?.place === true)
    await placeByActor(tx, { ...banHold(videoId), reason: look.reason, legal: false }, actor);
  else if (look?.lift === true) await liftByActor(tx, banHold(videoId), actor);
  else return 0;
  return 1;
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
