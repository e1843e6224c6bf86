import { z } from 'zod';
import { parseRational } from './rational.ts';
import { type Rational, type SourceContainer } from './types.ts';

/** A number that ffprobe writes as text, absent or `N/A` when it does not know. */
const numeric = z
  .string()
  .optional()
  .transform((text) => {
    const value = Number(text ?? NaN);
    return Number.isFinite(value) ? value : null;
  });

const stream = z.object({
  index: z.int().nonnegative(),
  codec_name: z.string().optional(),
  codec_type: z.string().optional(),
  codec_tag_string: z.string().optional(),
  width: z.int().optional(),
  height: z.int().optional(),
  pix_fmt: z.string().optional(),
  sample_aspect_ratio: z.string().optional(),
  field_order: z.string().optional(),
  has_b_frames: z.int().optional(),
  r_frame_rate: z.string().optional(),
  avg_frame_rate: z.string().optional(),
  time_base: z.string(),
  start_time: numeric,
  nb_frames: numeric,
  color_range: z.string().optional(),
  color_space: z.string().optional(),
  color_primaries: z.string().optional(),
  color_transfer: z.string().optional(),
  sample_rate: numeric,
  channels: z.int().optional(),
  channel_layout: z.string().optional(),
  disposition: z.record(z.string(), z.int()).default({}),
  tags: z.record(z.string(), z.string()).default({}),
  side_data_list: z.array(z.object({ displaymatrix: z.string().optional() })).default([]),
});

const frame = z.object({
  media_type: z.string(),
  /** Absent for subtitles. */
  stream_index: z.int().optional(),
  best_effort_timestamp: z.number().optional(),
  width: z.int().optional(),
  height: z.int().optional(),
  pix_fmt: z.string().optional(),
  sample_aspect_ratio: z.string().optional(),
  interlaced_frame: z.int().optional(),
  top_field_first: z.int().optional(),
  color_range: z.string().optional(),
  color_space: z.string().optional(),
  color_primaries: z.string().optional(),
  color_transfer: z.string().optional(),
});

const probeJson = z.object({
  frames: z.array(frame).default([]),
  streams: z.array(stream).default([]),
  format: z.object({ format_name: z.string(), start_time: numeric }),
});

type Stream = z.infer<typeof stream>;
type Frame = z.infer<typeof frame>;

/** What ffprobe says about the streams, and the first decoded frames. */
export type ProbeHeader = z.infer<typeof probeJson>;

/** When the packets of one stream are to be shown, in ticks of its time base. Hidden ones do not count. */
export interface PacketTimes {
  packets: number;
  /** With the hidden ones. */
  listed: number;
  /** Every packet has both its times, decoding times rise, and no two are shown at once. */
  orderly: boolean;
  /** Longest time from a key frame to the next or to the end, in ticks; infinite without any. */
  longestKeyGap: number;
  /** Rising and without repeats; pictures only, empty for sound. */
  ticks: readonly number[];
  /** Of the packet shown last; 0 when the container does not say. */
  lastDuration: number;
  /** First time, and the end of what is shown last. */
  firstTick: number;
  endTick: number;
}

/** Of a stream without packets. */
export const noPackets: PacketTimes = {
  ...{ packets: 0, listed: 0, orderly: true, longestKeyGap: Infinity },
  ...{ ticks: [], lastDuration: 0, firstTick: 0, endTick: 0 },
};

export interface ProbedVideo {
  index: number;
  codec: string | null;
  /** As the decoder gives it. */
  width: number;
  height: number;
  pixelFormat: string | null;
  /** Width of a pixel over its height. */
  pixelAspect: number;
  /** Rows a b, c d of the display matrix: `x' = ax + cy`, `y' = bx + dy`; null is upright. */
  matrix: readonly [number, number, number, number] | null;
  /** `tt`, `bb`, `tb`, `bt`, `progressive` or `unknown`. */
  fieldOrder: string;
  /** Of the decoded frames: how many, how many interlaced, how many of those top field first. */
  sample: { frames: number; interlaced: number; topFirst: number };
  /** Time of the first picture that decodes, in ticks; null when none did. */
  firstTick: number | null;
  /** Field-coded: a packet is a field, two make a picture. */
  fieldPackets: boolean;
  alpha: boolean;
  colour: {
    range: string | null;
    matrix: string | null;
    primaries: string | null;
    transfer: string | null;
  };
  timeBase: Rational;
  /** The stream's start by ffprobe: what ffmpeg counts from when it straightens a jumping clock. */
  startSeconds: number;
  declaredRates: readonly Rational[];
  isDefault: boolean;
  /** Cover art or thumbnails, by the container's own word. */
  isAttachment: boolean;
  /** Pictures that the header promises; null when it does not say. */
  declaredPictures: number | null;
  times: PacketTimes;
}

export interface ProbedAudio {
  index: number;
  /** Null when ffmpeg has no name, so no decoder, for it. */
  codec: string | null;
  codecTag: string;
  channels: number;
  layout: string | null;
  sampleRate: number;
  language: string | null;
  title: string | null;
  isDefault: boolean;
  /** Commentary and descriptions. */
  isSpecial: boolean;
  timeBase: Rational;
  startSeconds: number;
  times: PacketTimes;
}

/** All that planning needs to know of a source; made of the header and the scan, no verdict in it. */
export interface SourceProbe {
  container: SourceContainer;
  video: readonly ProbedVideo[];
  audio: readonly ProbedAudio[];
  /** The scan found jumps in the timestamps and straightened them. */
  discontinuous: boolean;
}

/**
 * Reads the standard output of an ffprobe run with `probeArgs`.
 * @throws ZodError or SyntaxError when ffprobe was cut off or is another program.
 */
export const readProbeHeader = (stdout: string): ProbeHeader => probeJson.parse(JSON.parse(stdout));

const ofStream = (header: ProbeHeader, index: number): Frame[] =>
  header.frames.filter((f) => f.stream_index === index && f.media_type === 'video');

const isPicture = (s: Stream): boolean => s.codec_type === 'video';
const isAttachment = (s: Stream): boolean =>
  s.disposition['attached_pic'] === 1 || s.disposition['timed_thumbnails'] === 1;

/**
 * True when no picture decoded within the sample although there are video streams: the file may start far
 * before its first key frame. Probe once more with `samplePackets.longer` before judging.
 */
export const needsLongerSample = (header: ProbeHeader): boolean => {
  const videos = header.streams.filter((s) => isPicture(s) && !isAttachment(s));
  return videos.length > 0 && videos.every((s) => ofStream(header, s.index).length === 0);
};

/** Joins what the headers say with the times that the packets have. */
export function buildProbe(
  container: SourceContainer,
  header: ProbeHeader,
  scan: { streams: ReadonlyMap<number, PacketTimes>; discontinuous: boolean },
): SourceProbe {
  const times = (s: Stream): PacketTimes => scan.streams.get(s.index) ?? noPackets;
  return {
    container,
    video: header.streams.filter(isPicture).map((s) => readVideo(s, ofStream(header, s.index), times(s))),
    audio: header.streams.filter((s) => s.codec_type === 'audio').map((s) => readAudio(s, times(s))),
    discontinuous: scan.discontinuous,
  };
}

const known = (text: string | undefined): string | null =>
  text === undefined || text === 'unknown' || text === 'unspecified' || text === 'none' ? null : text;

function readVideo(s: Stream, frames: Frame[], times: PacketTimes): ProbedVideo {
  const first = frames[0];
  const colour = (key: 'color_range' | 'color_space' | 'color_primaries' | 'color_transfer'): string | null =>
    known(first?.[key]) ?? known(s[key]);
  const interlaced = frames.filter((f) => f.interlaced_frame === 1);
  const ticks = frames.flatMap((f) => f.best_effort_timestamp ?? []);
  return {
    index: s.index,
    codec: known(s.codec_name),
    width: first?.width ?? s.width ?? 0,
    height: first?.height ?? s.height ?? 0,
    pixelFormat: known(first?.pix_fmt) ?? known(s.pix_fmt),
    pixelAspect: pixelAspect(s.sample_aspect_ratio ?? first?.sample_aspect_ratio),
    matrix: displayMatrix(s),
    fieldOrder: s.field_order ?? 'unknown',
    sample: {
      frames: frames.length,
      interlaced: interlaced.length,
      topFirst: interlaced.filter((f) => f.top_field_first === 1).length,
    },
    firstTick: ticks.length > 0 ? Math.min(...ticks) : null,
    fieldPackets: interlaced.length > 0 && hasFieldPackets(ticks, times),
    alpha: hasAlpha(s, first),
    colour: {
      range: colour('color_range'),
      matrix: colour('color_space'),
      primaries: colour('color_primaries'),
      transfer: colour('color_transfer'),
    },
    timeBase: parseRational(s.time_base) ?? [1, 1000],
    startSeconds: s.start_time ?? 0,
    declaredRates: [parseRational(s.r_frame_rate), parseRational(s.avg_frame_rate)].filter((r) => r !== null),
    isDefault: s.disposition['default'] === 1,
    isAttachment: isAttachment(s),
    declaredPictures: s.nb_frames,
    times,
  };
}

/** A shape outside 1:8 to 8:1 is a broken header, not a camera. */
function pixelAspect(text: string | undefined): number {
  const ratio = parseRational(text);
  const aspect = ratio === null ? 1 : ratio[0] / ratio[1];
  return aspect >= 1 / 8 && aspect <= 8 ? aspect : 1;
}

/** Matrix rows as ffprobe dumps them: `00000000:  0  65536  0\n00000001:  -65536  0  0\n…`. */
function displayMatrix(s: Stream): ProbedVideo['matrix'] {
  const dump = s.side_data_list.find((d) => d.displaymatrix !== undefined)?.displaymatrix;
  const rows = (dump ?? '')
    .split('\n')
    .filter((line) => line.includes(':'))
    .map((line) =>
      line
        .slice(line.indexOf(':') + 1)
        .trim()
        .split(/\s+/)
        .map(Number),
    );
  const [a, b, c, d] = [rows[0]?.[0], rows[0]?.[1], rows[1]?.[0], rows[1]?.[1]];
  return a === undefined || b === undefined || c === undefined || d === undefined ? null : [a, b, c, d];
}

/** Between the first and the last decoded picture, a field-coded stream has two packets for each. */
function hasFieldPackets(frameTicks: number[], times: PacketTimes): boolean {
  if (frameTicks.length < 3) return false;
  const [first, last] = [Math.min(...frameTicks), Math.max(...frameTicks)];
  const packets = times.ticks.filter((t) => t >= first && t < last).length;
  return packets >= 1.8 * (frameTicks.length - 1);
}

const alphaFormats = /^(yuva|rgba|bgra|argb|abgr|gbrap|ya8|ya16|ayuv)/;

const hasAlpha = (s: Stream, first: Frame | undefined): boolean =>
  alphaFormats.test(first?.pix_fmt ?? s.pix_fmt ?? '') || s.tags['alpha_mode'] === '1';

function readAudio(s: Stream, times: PacketTimes): ProbedAudio {
  return {
    index: s.index,
    codec: known(s.codec_name),
    codecTag: s.codec_tag_string ?? '',
    channels: s.channels ?? 0,
    layout: known(s.channel_layout),
    sampleRate: s.sample_rate ?? 0,
    language: s.tags['language'] ?? null,
    title: s.tags['title'] ?? null,
    isDefault: s.disposition['default'] === 1,
    isSpecial: ['comment', 'visual_impaired', 'hearing_impaired'].some((key) => s.disposition[key] === 1),
    timeBase: parseRational(s.time_base) ?? [1, 1000],
    startSeconds: s.start_time ?? 0,
    times,
  };
}
