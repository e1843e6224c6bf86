import { z } from 'zod';

/** What a media task leaves in the record (`task_outputs.output`), for the assemble task. */

/** `[offset, bytes, ticks, keyBytes, samples]` of one segment; `keyBytes` as in the delivery index. */
const segment = z.tuple([z.int(), z.int(), z.int(), z.int(), z.int()]);

const storedTrack = z.object({
  kind: z.enum(['rendition', 'audio']),
  /** In the manifest's `renditions` or `audio`. */
  index: z.int().nonnegative(),
  key: z.string(),
  bytes: z.int().positive(),
  /** `[offset, bytes]` of the init segment, and its SHA-256: all chunks must have the same. */
  init: z.tuple([z.int(), z.int()]),
  initHash: z.string(),
  codec: z.string(),
  timescale: z.int().positive(),
  /** Decode time of the first sample, in ticks. */
  startTicks: z.int().nonnegative(),
  segments: z.array(segment).min(1),
});
export type StoredTrack = z.infer<typeof storedTrack>;

const storedFile = z.object({
  /** Path name below the video. */
  name: z.string(),
  key: z.string(),
  bytes: z.int().positive(),
  contentType: z.string(),
});

export const mediaOutput = z.object({
  tracks: z.array(storedTrack),
  files: z.array(storedFile),
  /** Of a chunk of video: hashes of its first picture and of the one behind its last (`ChunkEdges`). */
  edges: z.object({ first: z.string().nullable(), afterLast: z.string().nullable() }).optional(),
  /** Of the pictures: the moment that was wished for when they were made. */
  posterAtSeconds: z.number().nullable().optional(),
  /** The command that made it, so that it can be repeated; `{input}` and `{folder}` stand for the places. */
  args: z.array(z.string()),
  /** The command to run before it, where there is one. */
  copyArgs: z.array(z.string()).optional(),
});
export type MediaOutput = z.infer<typeof mediaOutput>;
