import { createHash, createHmac } from 'node:crypto';
import { type PlaybackUsageMessage } from '@millrace/contract';
import { type Clock } from '@millrace/platform';
import { GenerationCache } from '../generation-cache.ts';
import { type VerifiedToken } from '../tokens.ts';
import { SegmentSet } from './segment-set.ts';

/** A video segment that a viewer is being sent. */
export interface Watched {
  token: VerifiedToken;
  /** The viewer's address. */
  ip: string;
  accountId: string;
  /** Segment number, whatever the quality. */
  segment: number;
  /** Duration of the segment, in milliseconds. */
  ms: number;
  /** Length of the segment. */
  bytes: number;
}

type View = PlaybackUsageMessage['views'][number];

/**
 * Counts watched time: a video segment once per token, address and segment number, in whatever quality, when
 * half of its bytes were sent, ranges summed (contract MET-005, MET-006).
 */
export interface UsageMeter {
  /** How many bytes of the segment this viewer lacks before it counts; 0 when it counts already. */
  missing(watched: Watched): number;
  /** So many more bytes of the segment went out. */
  sent(watched: Watched, bytes: number): void;
  /** What was counted since the last call, by account. */
  take(): Map<string, View[]>;
}

/** What one viewer, a token at an address, was sent. */
interface Viewer {
  tokenHash: string;
  ipHash: string;
  /** Segments that count already. */
  counted: SegmentSet;
  /** Of segments sent in part, the share that was sent; the oldest is forgotten when there are too many. */
  shares: Map<number, number>;
}

const maximumShares = 64;
/** A viewer in memory, with the bits of a day's segments and some shares. */
const viewerBytes = 4_000;
/** Sums of shares come a rounding error short of a half. */
const half = 0.5 - 1e-9;

/** @param maximumBytes bound of the memory; who falls out may be sent again, and is counted once downstream */
export function createUsageMeter(clock: Clock, maximumBytes: number): UsageMeter {
  const viewers = new GenerationCache<Viewer>(maximumBytes);
  let pending = new Map<string, Map<Viewer, View>>();

  const viewerOf = (token: VerifiedToken, ip: string): Viewer => {
    const name = `${ip} ${token.text}`;
    const known = viewers.get(name);
    if (known !== undefined) return known;
    const viewer = {
      ...hashes(token.text, ip),
      counted: new SegmentSet(),
      shares: new Map<number, number>(),
    };
    viewers.set(name, viewer, viewerBytes + 2 * name.length);
    return viewer;
  };

  return {
    missing({ token, ip, segment, bytes }) {
      const { counted, shares } = viewerOf(token, ip);
      return counted.has(segment) ? 0 : Math.ceil((half - (shares.get(segment) ?? 0)) * bytes);
    },
    sent({ token, ip, accountId, segment, ms, bytes: size }, bytes) {
      const viewer = viewerOf(token, ip);
      if (viewer.counted.has(segment) || !reachesHalf(viewer, segment, bytes / size)) return;
      viewer.counted.add(segment);
      const views = pending.get(accountId) ?? new Map<Viewer, View>();
      pending.set(accountId, views);
      const { tokenHash, ipHash } = viewer;
      const at = clock.now().toISOString();
      const view = views.get(viewer) ?? {
        tokenHash,
        ipHash,
        videoId: token.claims.videoId,
        segments: [],
        at,
      };
      views.set(viewer, view);
      view.segments.push({ index: segment, ms });
    },
    take() {
      const taken = pending;
      pending = new Map();
      return new Map(Array.from(taken, ([accountId, views]) => [accountId, [...views.values()]]));
    },
  };
}

function reachesHalf({ shares }: Viewer, segment: number, share: number): boolean {
  const sum = (shares.get(segment) ?? 0) + share;
  shares.delete(segment);
  if (sum >= half) return true;
  shares.set(segment, sum);
  const [oldest] = shares.keys();
  if (shares.size > maximumShares && oldest !== undefined) shares.delete(oldest);
  return false;
}

/**
 * The address is hashed with the token as the key: the same viewer has the same hash on every CDN process, and
 * nobody without the token can try addresses until one fits.
 */
const hashes = (token: string, ip: string): { tokenHash: string; ipHash: string } => ({
  tokenHash: createHash('sha256').update(token).digest('base64url').slice(0, 22),
  ipHash: createHmac('sha256', token).update(ip).digest('base64url').slice(0, 22),
});
