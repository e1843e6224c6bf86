import { z } from 'zod';
import { accountPlaybackState, projectPlaybackState, videoPlaybackState } from './topics.ts';

/**
 * The answer of `GET /internal/playback-state/{videoId}` (header `X-Internal-Secret`), read by the CDN on a
 * miss: the states as the record has them now, from one transaction. A deleted video is still answered, with
 * status `deleted`, as long as the record knows it; an unknown one is `404 not_found`. `account` is null only
 * where the video is deleted and its account is gone.
 */
export const playbackStateResponse = z.object({
  video: videoPlaybackState.nullable(),
  account: accountPlaybackState.nullable(),
  /** Null from an API that is older than this field. */
  project: projectPlaybackState.nullable().default(null),
});

/** Body and answer of `PUT /internal/cdn-processes/{bootId}`, by which a process of the CDN tells that it is there. */
export const cdnProcessNote = z.object({
  /** The bus did not take its word: it lives by the internal route alone, and confirms nothing. */
  cutOff: z.boolean(),
});

export type PlaybackStateResponse = z.infer<typeof playbackStateResponse>;
export type CdnProcessNote = z.infer<typeof cdnProcessNote>;
