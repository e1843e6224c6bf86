import {
  type AccountPlaybackState,
  type PlaybackStateResponse,
  type Quality,
  type VideoPlaybackState,
  type VideoStatus,
} from '@millrace/contract';
import { projectPlaybackStateOf, type StoredBranding } from './branding.ts';
import { captionsColumn } from './captions-state.ts';
import { type Queryable, type Transaction } from './db.ts';
import { accountStateMessage, addToOutbox } from './outbox.ts';
import { joinPlan } from './plans.ts';

/** Only some plans stop at the watch limit; the others count overage. */
const accountColumns = `a.id as "accountId", a.version as "accountVersion", pl.max_quality as "maxQuality",
  a.over_watch_limit and pl.watch_limit_stops as "overWatchLimit", pl.white_label as "whiteLabel"`;

interface AccountStateRow {
  accountId: string;
  accountVersion: number;
  maxQuality: Quality;
  overWatchLimit: boolean;
  whiteLabel: boolean;
}

const accountStateOf = (row: AccountStateRow): AccountPlaybackState => ({
  accountId: row.accountId,
  version: row.accountVersion,
  maxQuality: row.maxQuality,
  overWatchLimit: row.overWatchLimit,
  whiteLabel: row.whiteLabel,
});

interface PlaybackStateRow extends AccountStateRow {
  version: number;
  status: VideoPlaybackState['status'];
  indexKey: string | null;
  projectId: string;
  title: string;
  captions: VideoPlaybackState['captions'];
  projectVersion: number;
  branding: StoredBranding;
}

/**
 * What the CDN needs to know of a video: its state, its account's and its project's, of one moment. A deleted video is
 * answered for 30 days (contract CDN-335); null when there is none.
 */
export async function readPlaybackState(
  db: Queryable,
  videoId: string,
): Promise<PlaybackStateResponse | null> {
  const { rows } = await db.query<PlaybackStateRow>(
    `select v.version, case when v.deleted_at is null then v.status else 'deleted' end as status,
       v.index_key as "indexKey", v.project_id as "projectId", v.title, pr.version as "projectVersion",
       pr.branding, ${captionsColumn('v.id')} as captions, ${accountColumns}
     from videos v join projects pr on pr.id = v.project_id join accounts a on a.id = v.account_id ${joinPlan}
     where v.id = $1 and (v.deleted_at is null or v.deleted_at > clock_timestamp() - interval '30 days')`,
    [videoId],
    'playback-state',
  );
  const row = rows[0];
  if (!row) return null;
  const { accountId, version, status, indexKey, projectId, title, captions, projectVersion, branding } = row;
  return {
    video: { videoId, accountId, version, status, indexKey, projectId, title, captions },
    account: accountStateOf(row),
    project: projectPlaybackStateOf({ id: projectId, version: projectVersion, branding }),
  };
}

/**
 * Raises an account's version and tells every CDN process what now holds for it. To be called in the
 * transaction that changes the plan, its status or the watch limit.
 */
export async function publishAccountState(tx: Transaction, accountId: string): Promise<void> {
  const { rows } = await tx.query<AccountStateRow>(
    `with a as (
       update accounts set version = version + 1,
         updated_at = greatest(clock_timestamp(), updated_at + interval '1 millisecond')
       where id = $1 returning *)
     select ${accountColumns} from a ${joinPlan}`,
    [accountId],
    'playback-publish-account',
  );
  const row = rows[0];
  if (!row) throw new Error(`account ${accountId} does not exist`);
  await addToOutbox(tx, [accountStateMessage(accountStateOf(row))]);
}

/** All that decides whether a token that plays may be made, of one moment. */
export interface PlaybackGrant {
  status: VideoStatus;
  durationMs: number | null;
  /** The host name is verified on this project; false without one. */
  domainVerified: boolean;
  /** A plan that stops at its watched minutes has used them up. */
  overWatchLimit: boolean;
  whiteLabel: boolean;
}

/** Null when the project has no such video. */
export async function readPlaybackGrant(
  db: Queryable,
  input: { projectId: string; videoId: string; hostname: string | null },
): Promise<PlaybackGrant | null> {
  const { rows } = await db.query<PlaybackGrant>(
    `select v.status, v.duration_ms as "durationMs", pl.white_label as "whiteLabel",
       exists (select from domains d where d.project_id = v.project_id and d.hostname = $3
                 and d.status = 'verified') as "domainVerified",
       pl.watch_limit_stops and (a.over_watch_limit or coalesce(
         u.period_end > clock_timestamp() and u.watched_ms >= pl.watched_minutes_per_period * 60000, false))
         as "overWatchLimit"
     from videos v join accounts a on a.id = v.account_id ${joinPlan}
     left join usage u on u.account_id = a.id
     where v.id = $1 and v.project_id = $2 and v.deleted_at is null`,
    [input.videoId, input.projectId, input.hostname],
    'playback-grant',
  );
  return rows[0] ?? null;
}
