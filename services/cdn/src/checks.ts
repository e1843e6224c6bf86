import {
  type AccountPlaybackState,
  type Branding,
  type ErrorCode,
  type ProjectPlaybackState,
  type VideoPlaybackState,
  withinQuality,
} from '@millrace/contract';
import { isExpired, isOriginOf, originOfReferer } from '@millrace/domain';
import { type RequestHead } from './http/head.ts';
import { type Target } from './http/target.ts';
import { type Tokens, type VerifiedToken } from './tokens.ts';

/**
 * The checks of the contract ("Playback protection", check order). The first failure wins; `admit` makes those
 * that need the request alone, `permit` those that need the state of video and account.
 */

/** A request that may not be answered, with the code that says why. */
export interface Refusal {
  refused: ErrorCode;
}

export interface AdmitRules {
  tokens: Tokens;
  /** The CDN's own origin: the embed page on it plays as the token's domain does. */
  ownOrigin: string;
}

/** Token and origin, in the contract's order. Gives the verified token. */
export function admit(
  target: Target,
  presented: readonly string[],
  head: Pick<RequestHead, 'origin' | 'referer'>,
  now: Date,
  { tokens, ownOrigin }: AdmitRules,
): VerifiedToken | Refusal {
  const [text = ''] = presented;
  if (text === '' && presented.length < 2) return { refused: 'token_missing' };
  const token = presented.length === 1 ? tokens.verify(text) : null;
  if (token === null || token.claims.videoId !== target.videoId) return { refused: 'token_invalid' };
  if (isExpired(token.claims, now)) {
    tokens.forget(token);
    return { refused: 'token_expired' };
  }
  const origin = originOf(head);
  if (origin === null) return { refused: 'origin_missing' };
  return isAllowed(origin, token, ownOrigin) ? token : { refused: 'domain_mismatch' };
}

type Origins = Pick<RequestHead, 'origin' | 'referer'>;

const originOf = ({ origin, referer }: Origins): string | null =>
  origin ?? (referer === null ? null : originOfReferer(referer));

const isAllowed = (origin: string, { claims }: VerifiedToken, ownOrigin: string): boolean =>
  isOriginOf(origin, claims.domain) || origin.toLowerCase() === ownOrigin;

/** A request for the embed page: its token when that is genuine, though the page may be refused. */
interface PageAdmission {
  token: VerifiedToken | null;
  refused: ErrorCode | null;
}

/**
 * The same for the embed page, with two differences (contract EMB-202, EMB-207): the same token may come twice, since
 * the dashboard appends it; and without an origin it passes, since browsers send none with a frame's first request
 * and `frame-ancestors` keeps other pages out.
 */
export function admitPage(
  videoId: string,
  presented: readonly string[],
  head: Origins,
  now: Date,
  { tokens, ownOrigin }: AdmitRules,
): PageAdmission {
  const [text = '', ...others] = presented;
  if (presented.every((each) => each === '')) return { token: null, refused: 'token_missing' };
  const token = others.every((each) => each === text) ? tokens.verify(text) : null;
  if (token === null || token.claims.videoId !== videoId) return { token: null, refused: 'token_invalid' };
  if (isExpired(token.claims, now)) {
    tokens.forget(token);
    return { token, refused: 'token_expired' };
  }
  const origin = originOf(head);
  const refused = origin === null || isAllowed(origin, token, ownOrigin) ? null : 'domain_mismatch';
  return { token, refused };
}

/** What the record says of a video, its account and its project; null where it knows nothing. */
export interface PlaybackView {
  video: VideoPlaybackState | null;
  account: AccountPlaybackState | null;
  /** Decides nothing, only how a player looks; null for what cannot play. */
  project: ProjectPlaybackState | null;
}

/** The project's branding where it has effect; null: the player shows the service's logo and colour. */
export const brandingOf = ({ account, project }: PlaybackView): Branding | null =>
  account?.whiteLabel === true ? (project?.branding ?? null) : null;

/** Null when the states allow what is asked for. A video or account that the record does not know is refused. */
export function permit(target: Pick<Target, 'quality'>, { video, account }: PlaybackView): Refusal | null {
  if (video?.status !== 'ready' || account === null) return { refused: 'video_unavailable' };
  const aboveQuality = target.quality !== null && !withinQuality(target.quality, account.maxQuality);
  return account.overWatchLimit || aboveQuality ? { refused: 'plan_limit_reached' } : null;
}
