import { z } from 'zod';
import { qualities } from './qualities.ts';

/**
 * What the assembler writes and the CDN reads: where every byte of a finished encode lies. One immutable
 * JSON object per encode; `VideoPlaybackState.indexKey` names it. Playlists are rendered from it.
 */

/** `[object, offset, bytes, ticks, keyBytes]`: index into `objects`, byte range of one CMAF segment in it, its
 * duration in `timescale` ticks, and the bytes from its start to the end of its first sample (0 for audio). */
const segment = z.tuple([z.int(), z.int(), z.int(), z.int(), z.int()]);

const track = z.object({
  timescale: z.int().positive(),
  /** Object keys; segments refer to them by position. */
  objects: z.array(z.string()),
  /** `[object, offset, bytes]` of the init segment. */
  init: z.tuple([z.int(), z.int(), z.int()]),
  segments: z.array(segment),
  /** Measured, bits per second, this track alone (RFC 8216 §4.3.4.2). */
  peakBandwidth: z.int().positive(),
  averageBandwidth: z.int().positive(),
  /** RFC 6381, from the init segment itself: `avc1.640028`, `mp4a.40.2`. */
  codec: z.string(),
});

export const deliveryIndex = z.object({
  v: z.literal(1),
  videoId: z.string(),
  /** What plays, measured on the output, in milliseconds. */
  durationMs: z.number().positive(),
  /** By rising quality. */
  renditions: z.array(
    track.extend({
      quality: z.enum(qualities),
      width: z.int().positive(),
      height: z.int().positive(),
      /** Frames per second as a reduced fraction, `30000/1001`. */
      frameRate: z.string(),
    }),
  ),
  /** Empty for a silent video; the first is the default. Path name: `audio`, `audio-2`, … */
  audio: z.array(
    track.extend({ name: z.string(), language: z.string().nullable(), channels: z.int().positive() }),
  ),
  /** Single-object files by path name below the video: `poster.jpg`. */
  files: z.record(z.string(), z.object({ key: z.string(), bytes: z.int(), contentType: z.string() })),
});

export type DeliveryIndex = z.infer<typeof deliveryIndex>;
export type DeliveryTrack = z.infer<typeof track>;
