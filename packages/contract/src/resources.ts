import { z } from 'zod';
import { qualities } from './qualities.ts';

/** Resources of the contract, as answered. Inputs live with their routes. */

export const timestamp = z.iso.datetime({ precision: 3 });
const id = (prefix: string) => z.string().regex(new RegExp(`^${prefix}_[A-Za-z0-9]+$`));

export const videoStatuses = ['uploading', 'processing', 'ready', 'failed', 'held'] as const;
export const failureCodes = [
  'unsupported_codec',
  'invalid_file',
  'no_video_track',
  'plan_limit_reached',
  'encoding_failed',
] as const;
export type VideoStatus = (typeof videoStatuses)[number];
export type FailureCode = (typeof failureCodes)[number];

export const failure = z.object({ code: z.enum(failureCodes), message: z.string() });
export type Failure = z.infer<typeof failure>;

export const video = z.object({
  id: id('vid'),
  projectId: id('prj'),
  title: z.string(),
  status: z.enum(videoStatuses),
  durationSeconds: z.number().nullable(),
  qualities: z.array(z.enum(qualities)),
  sizeBytes: z.int(),
  failure: failure.nullable(),
  createdAt: timestamp,
  updatedAt: timestamp,
  readyAt: timestamp.nullable(),
  accessMode: z.literal('protected'),
});
export type Video = z.infer<typeof video>;

export const eventTypes = [
  'video.ready',
  'video.failed',
  'video.held',
  'video.removed',
  'webhook.test',
] as const;
export type EventType = (typeof eventTypes)[number];

/** The body of a webhook about a video (contract "Events"). */
export const videoEvent = z.object({
  id: id('evt'),
  type: z.enum(eventTypes),
  createdAt: timestamp,
  projectId: id('prj'),
  data: z.object({ video, reason: z.string().optional() }),
});
export type VideoEvent = z.infer<typeof videoEvent>;
