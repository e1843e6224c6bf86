import { z } from 'zod';
import { branding } from './resources.ts';
import { looseText } from './text.ts';

/**
 * Envelopes on the bus. Consumers ignore unknown fields (plain `z.object`), producers change payloads only
 * additively within a version.
 */

const version = z.number().int().nonnegative();
/** An id or a hash: whatever it says, the record can hold it. */
const name = looseText({ max: 100 });
/** No segment lasts longer. */
const dayMs = 86_400_000;

/** A permit to claim work; the record decides what is claimed (key: task id). */
export const encodeTaskMessage = z.object({ v: z.literal(1), taskId: name, kind: name });

/** Something happened to a video that customers hear about (key: video id). The body is in `events`. */
export const videoEventMessage = z.object({
  v: z.literal(1),
  eventId: name,
  type: name,
  projectId: name,
  videoId: name,
});

/** Captions of a video in one language, as a WebVTT file of ours. */
const captionsPlaybackState = z.object({
  /** BCP 47, canonical. */
  language: z.string(),
  /** What players show to choose it by. */
  name: z.string(),
  /** Object key of the file; another one after each change. */
  key: z.string(),
  bytes: z.int().nonnegative(),
});

/** All that the CDN needs to know of a video to decide a request. `version` rises with every change. */
export const videoPlaybackState = z.object({
  videoId: z.string(),
  accountId: z.string(),
  version,
  /** `ready` plays; anything else is `video_unavailable`. */
  status: z.enum(['uploading', 'processing', 'ready', 'failed', 'held', 'deleted']),
  /** Object key of the delivery index (`DeliveryIndex`) of the current encode; null before the first. */
  indexKey: z.string().nullable(),
  /** Null only from a producer that is older than this field; the same holds of an empty title. */
  projectId: z.string().nullable().default(null),
  title: z.string().default(''),
  /** By language; they change without an encode, so they are not in the delivery index (ADR 10). */
  captions: z.array(captionsPlaybackState).default([]),
});

/** All that the CDN needs to know of an account. */
export const accountPlaybackState = z.object({
  accountId: z.string(),
  version,
  maxQuality: z.enum(['360p', '720p', '1080p', '1440p', '2160p']),
  /** True while the account is over its free watched-minutes limit. */
  overWatchLimit: z.boolean(),
  /** Without it a project's branding has no effect. */
  whiteLabel: z.boolean(),
});

/**
 * What a project says of how its videos look, as stored: whether it has effect is the account's plan's to say.
 * A state of its own, so that a change of it is one message however many videos there are (ADR 0007).
 */
export const projectPlaybackState = z.object({ projectId: z.string(), version, branding });

/** Key: video id, account id, project id, or `heartbeat`. */
export const playbackStateMessage = z.discriminatedUnion('kind', [
  z.object({ v: z.literal(1), kind: z.literal('video'), state: videoPlaybackState }),
  z.object({ v: z.literal(1), kind: z.literal('account'), state: accountPlaybackState }),
  z.object({ v: z.literal(1), kind: z.literal('project'), state: projectPlaybackState }),
  /** Every commit before `at` (database time) on this partition precedes this message. */
  z.object({ v: z.literal(1), kind: z.literal('heartbeat'), at: z.iso.datetime() }),
]);

/** Watched time since the last batch; (bootId, sequence) makes it idempotent (key: account id). */
export const playbackUsageMessage = z.object({
  v: z.literal(1),
  bootId: name,
  sequence: z.number().int().nonnegative(),
  accountId: name,
  views: z.array(
    z.object({
      tokenHash: name,
      ipHash: name,
      videoId: name,
      /** Segment duration in milliseconds, by segment index counted now. */
      segments: z.array(
        z.object({ index: z.number().int().nonnegative(), ms: z.number().nonnegative().max(dayMs) }),
      ),
      at: z.iso.datetime(),
    }),
  ),
});

/**
 * Up to which instant of the database a process of the CDN knows every change of the playback state (key: boot id).
 * The first one comes before the process serves anybody.
 */
export const playbackConfirmationMessage = z.object({
  v: z.literal(1),
  bootId: looseText({ max: 64 }),
  /** 1970 while it has read no heartbeat. */
  confirmedUpTo: z.iso.datetime(),
  /** The process serves nobody any longer. */
  ended: z.boolean().default(false),
});

export type EncodeTaskMessage = z.infer<typeof encodeTaskMessage>;
export type VideoEventMessage = z.infer<typeof videoEventMessage>;
export type CaptionsPlaybackState = z.infer<typeof captionsPlaybackState>;
export type VideoPlaybackState = z.infer<typeof videoPlaybackState>;
export type AccountPlaybackState = z.infer<typeof accountPlaybackState>;
export type ProjectPlaybackState = z.infer<typeof projectPlaybackState>;
export type PlaybackStateMessage = z.infer<typeof playbackStateMessage>;
export type PlaybackConfirmationMessage = z.input<typeof playbackConfirmationMessage>;
export type PlaybackUsageMessage = z.infer<typeof playbackUsageMessage>;

/** Topics, their partitions in a fresh installation, and the schema of what they carry. */
export const topics = {
  encodeTasks: { name: 'millrace.encode.tasks', partitions: 12, schema: encodeTaskMessage },
  videoEvents: { name: 'millrace.video.events', partitions: 12, schema: videoEventMessage },
  playbackState: { name: 'millrace.playback.state', partitions: 4, schema: playbackStateMessage },
  playbackConfirmations: {
    name: 'millrace.playback.confirmations',
    partitions: 4,
    schema: playbackConfirmationMessage,
  },
  playbackUsage: { name: 'millrace.playback.usage', partitions: 12, schema: playbackUsageMessage },
} as const;

/** Where a message that does not parse goes. */
export const deadTopic = (topic: string): string => `${topic}.dead`;
