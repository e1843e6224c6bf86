import { qualities } from '@millrace/contract';
import { z } from 'zod';

/**
 * What the encoder's parts hand to each other: the probe of a source, the verdict on it, the manifest of an
 * encode and the commands of its tasks. Times are seconds unless the name says otherwise.
 */

/** A fraction in lowest terms with a positive denominator: `[30000, 1001]`. */
export type Rational = readonly [number, number];

/** Families of containers that are read; everything else is refused (contract ENC-013). */
export const sourceContainers = ['mp4', 'matroska', 'mpegts', 'mpegps', 'avi', 'flv'] as const;
export type SourceContainer = (typeof sourceContainers)[number];

/** What the first bytes of a file say that it is. */
export type Sniffed =
  | { readonly kind: 'video'; readonly container: SourceContainer }
  /** Recognised sound or still picture: `no_video_track`. */
  | { readonly kind: 'audio' | 'image'; readonly format: string }
  /** A playlist, script or manifest that names other files; must never be opened by a demuxer. */
  | { readonly kind: 'reference'; readonly format: string }
  /** Known, but not one of the families that are read. */
  | { readonly kind: 'unsupported'; readonly format: string }
  | { readonly kind: 'empty' | 'unknown' };

export const failureKinds = [
  'empty',
  'not_media',
  'not_video',
  'no_video',
  'unreadable',
  'no_decodable_video',
  'unsupported_audio',
  'corrupt',
  'unsupported_dimensions',
  'unsafe_reference',
  'content_type_mismatch',
] as const;
export type FailureKind = (typeof failureKinds)[number];

/** `failure.code` of the contract, as far as the source is to blame. */
export type SourceFailureCode = 'unsupported_codec' | 'invalid_file' | 'no_video_track';

/** The source cannot be encoded, ever: retrying is useless. */
export interface SourceFailure {
  readonly ok: false;
  /** Goes to `failure.code`. */
  readonly code: SourceFailureCode;
  /** The finer reason, for logs and the ingest report. */
  readonly kind: FailureKind;
  /** Goes to `failure.message`: says what is wrong and what to do. */
  readonly message: string;
}
export type SourceVerdict = SourceFailure | { readonly ok: true };

const rational = z.tuple([z.int().nonnegative(), z.int().positive()]);

const colour = z.object({
  /** How the pictures are stored, by ffmpeg's names: `bt709`, `smpte170m`, `bt2020nc`, … */
  matrix: z.string(),
  primaries: z.string(),
  transfer: z.string(),
  range: z.enum(['tv', 'pc']),
});

const video = z.object({
  /** Stream index in the source. */
  stream: z.int().nonnegative(),
  codec: z.string(),
  /** Decoder to force (alpha in VP8 and VP9 needs libvpx), or null for ffmpeg's own choice. */
  decoder: z.string().nullable(),
  /** Size and format that the decoder gives at the start; later changes are brought back to it. */
  width: z.int().positive(),
  height: z.int().positive(),
  pixelFormat: z.string().nullable(),
  /** Clockwise turn that a player makes, and mirroring before it. */
  rotation: z.union([z.literal(0), z.literal(90), z.literal(180), z.literal(270)]),
  mirrored: z.boolean(),
  /** As displayed: pixel shape and rotation applied. Not evened. */
  displayWidth: z.int().positive(),
  displayHeight: z.int().positive(),
  colour,
  toneMap: z.enum(['none', 'hlg', 'pq']),
  alpha: z.boolean(),
  deinterlace: z.enum(['none', 'tff', 'bff']),
});

const rendition = z.object({
  quality: z.enum(qualities),
  width: z.int().positive(),
  height: z.int().positive(),
  crf: z.number(),
  /** Bits per second. */
  maxrate: z.int().positive(),
  /** Bits; at most 1.5 × maxrate. */
  bufsize: z.int().positive(),
  /** H.264 level × 10: 31 is 3.1. */
  level: z.int(),
});

const audioTrack = z.object({
  stream: z.int().nonnegative(),
  /** Unique in the video; fit for HLS `NAME`. */
  name: z.string(),
  /** BCP 47, null when the source does not say. */
  language: z.string().nullable(),
  /** Channels and rate of the output. */
  channels: z.union([z.literal(1), z.literal(2)]),
  sampleRate: z.union([z.literal(44_100), z.literal(48_000)]),
  bitrate: z.int().positive(),
  /** Channels in the source, and its layout where ffmpeg knows one. */
  sourceChannels: z.int().positive(),
  sourceLayout: z.string().nullable(),
  /**
   * Set when the decoder must not be given the packets as they lie in the file: second, in ffmpeg's time line of
   * the source, at which the first packet begins. See `soundCopyArgs`.
   */
  copiedFromSeconds: z.number().nullable().default(null),
  /** AAC frames of 1,024 samples in a segment, and in the whole track. */
  segmentFrames: z.int().positive(),
  frames: z.int().positive(),
});

/** Output frames `[firstFrame, firstFrame + frames)`, on the global grid, beginning at a segment's edge. */
const chunk = z.object({ firstFrame: z.int().nonnegative(), frames: z.int().positive() });

const task = z.object({
  kind: z.enum(['video', 'audio', 'images']),
  /** Chunk for `video`, track for `audio`, 0 for `images`. */
  index: z.int().nonnegative(),
  /** Estimate in CPU seconds; orders and sizes work, promises nothing. */
  cost: z.number().positive(),
});

const note = z.object({
  /** Stable, for programs: `deinterlaced`, `tone_mapped`, `sound_undecodable`, … */
  code: z.string(),
  /** For people: what was done and why. */
  text: z.string(),
});

/** The whole plan of one encode; stored with it, so that it can be repeated. */
export const encodeManifest = z.object({
  v: z.literal(1),
  /** Raised when the same probe would give another plan. */
  planner: z.string(),
  container: z.enum(sourceContainers),
  video,
  /** Second in ffmpeg's time line of this source (file start removed) where the presentation begins. */
  zeroSeconds: z.number(),
  /** The timestamps jump: every task must read sound and picture packets together to undo it alike. */
  discontinuous: z.boolean(),
  frameRate: rational,
  /** Output frames of the whole video. */
  frames: z.int().positive(),
  /** Frames at the end that hold the last picture because the sound goes on. */
  heldFrames: z.int().nonnegative(),
  /** Frames in one segment; the last may have fewer. */
  segmentFrames: z.int().positive(),
  /** `frames` / `frameRate`: what plays, as planned. */
  durationSeconds: z.number().positive(),
  /** By rising quality. */
  renditions: z.array(rendition).min(1),
  /** Empty for a silent video; the first is the default. */
  audio: z.array(audioTrack),
  chunks: z.array(chunk).min(1),
  images: z.object({
    poster: z.object({ atSeconds: z.number().nonnegative(), width: z.int(), height: z.int() }),
  }),
  tasks: z.array(task).min(2),
  /** What was converted, dropped or noticed, and why: the ingest report. */
  notes: z.array(note),
});

export type EncodeManifest = z.infer<typeof encodeManifest>;
export type ManifestVideo = z.infer<typeof video>;
export type ManifestRendition = z.infer<typeof rendition>;
export type ManifestAudioTrack = z.infer<typeof audioTrack>;
export type ManifestChunk = z.infer<typeof chunk>;
export type ManifestTask = z.infer<typeof task>;
export type ManifestColour = z.infer<typeof colour>;
export type PlanNote = z.infer<typeof note>;

/** One file that a task writes into its output folder. */
export interface TaskOutput {
  /** File name, no folder: `video-0-720p.mp4`, `audio-0.mp4`, `poster.jpg`. */
  readonly file: string;
  readonly kind: 'rendition' | 'audio' | 'poster';
  /** Index in `renditions` or `audio`; 0 for the poster. */
  readonly index: number;
}

/** An ffmpeg command: arguments after the program's name, and what it writes. */
export interface TaskCommand {
  readonly args: readonly string[];
  readonly outputs: readonly TaskOutput[];
  /** `frame=` of `-progress` when it is done; null where ffmpeg reports none (sound, pictures). */
  readonly frames: number | null;
  /** Of a chunk among several: the file in the output folder that `readEdges` takes. */
  readonly edgesFile?: string;
}
