import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { ffmpeg, ffprobe } from './ffmpeg.ts';

const stream = z.object({
  index: z.number(),
  codec_type: z.string().optional(),
  codec_name: z.string().optional(),
  width: z.number().optional(),
  height: z.number().optional(),
  sample_aspect_ratio: z.string().optional(),
  color_transfer: z.string().optional(),
  disposition: z.object({ attached_pic: z.number() }).optional(),
  tags: z.record(z.string(), z.string()).optional(),
  side_data_list: z.array(z.object({ rotation: z.number().optional() })).optional(),
});
type Stream = z.output<typeof stream>;
const probeOutput = z.object({ streams: z.array(stream) });

export interface Size {
  width: number;
  height: number;
}

/** What a file shows: its picture as displayed (rotation and pixel aspect applied), and its sound. */
export interface Shown {
  /** Stream of the picture. */
  picture: number;
  display: Size;
  /** False when an encode may change colours: HDR becomes SDR, transparency black. */
  coloursKept: boolean;
  /** Streams of sound, decodable or not. */
  sounds: SoundStream[];
}

export interface SoundStream {
  index: number;
  /** By ffmpeg's name; '' when it knows none. */
  codec: string;
}

/** @throws Error when the file has no moving picture */
export async function probe(path: string, signal?: AbortSignal): Promise<Shown> {
  const { streams } = probeOutput.parse(JSON.parse(await ffprobe(path, signal)));
  const video = streams.find((one) => one.codec_type === 'video' && one.disposition?.attached_pic !== 1);
  if (!video) throw new Error(`${path} has no moving picture`);
  return {
    picture: video.index,
    display: displayOf(video),
    coloursKept:
      !['smpte2084', 'arib-std-b67'].includes(video.color_transfer ?? '') &&
      video.tags?.['alpha_mode'] !== '1',
    sounds: streams
      .filter((one) => one.codec_type === 'audio')
      .map(({ index, codec_name = '' }) => ({ index, codec: codec_name })),
  };
}

function displayOf({ width = 0, height = 0, sample_aspect_ratio = '', side_data_list = [] }: Stream): Size {
  const [across = NaN, down = NaN] = sample_aspect_ratio.split(':').map(Number);
  const shown = { width: across > 0 && down > 0 ? (width * across) / down : width, height };
  const rotation = side_data_list.find((data) => data.rotation !== undefined)?.rotation ?? 0;
  return Math.abs(rotation) % 180 === 90 ? { width: shown.height, height: shown.width } : shown;
}

/** Each picture is seen as 16 × 9 averages of red, green and blue: enough to tell one from another. */
const across = 16;
const down = 9;
export const bytesPerPicture = across * down * 3;

/** The pictures of a file in the order in which they are shown. */
export interface Pictures {
  /** When each is shown, in seconds by the file's clock. */
  times: number[];
  /** When the last one ends. */
  end: number;
  /** `bytesPerPicture` for each. */
  pixels: Buffer;
  /** The clock of the file jumps: its times were straightened, and say nothing of the sound's. */
  jumps: boolean;
  /** What the decoder complained of, or ''. */
  complaints: string;
}

/** Decodes a stream of pictures to its end. @throws Error when ffmpeg gives up */
export async function see(path: string, streamIndex: number, signal?: AbortSignal): Promise<Pictures> {
  const small = `[0:${streamIndex}]scale=${across}:${down}:flags=area,format=rgb24,split[pixels][times]`;
  const look = async (clock: readonly string[]): Promise<Pictures> => {
    const [pixels, listed, complaints] = await ffmpeg(
      [
        ...[...clock, '-i', path, '-filter_complex', small],
        ...['-map', '[pixels]', '-fps_mode', 'passthrough', '-f', 'rawvideo', 'pipe:1'],
        ...['-map', '[times]', '-fps_mode', 'passthrough', '-enc_time_base', '1/90000'],
        ...['-f', 'framecrc', 'pipe:3'],
      ],
      signal,
    );
    const frames = framesOf(listed);
    const last = frames.at(-1);
    const end = last === undefined ? 0 : last.time + last.seconds;
    return { times: frames.map(({ time }) => time), end, pixels, jumps: false, complaints };
  };
  const pictures = await look(['-copyts']);
  // A clock that jumps (recordings that were cut) is straightened by ffmpeg unless told to leave it alone.
  return jumps(pictures.times) ? { ...(await look([])), jumps: true } : pictures;
}

const longestGapSeconds = 10;
const jumps = (times: readonly number[]): boolean =>
  times.some((time, i) => i > 0 && !(Math.abs(time - (times[i - 1] ?? 0)) < longestGapSeconds));

/** Loudness is measured over blocks of this length, in seconds. */
export const loudnessBlock = 0.02;
const soundRate = 8000;
const samplesPerBlock = loudnessBlock * soundRate;
/** Nothing counts as quieter than this, in decibels of full scale. */
export const quietest = -60;

export interface Sound {
  /** By the file's clock, in seconds. */
  start: number;
  seconds: number;
  /** In decibels, for each block. */
  loudness: number[];
  complaints: string;
}

/** Decodes a stream of sound to its end. @throws Error when ffmpeg gives up: it has no decoder, or gets nothing out */
export function hear(path: string, { index, codec }: SoundStream, signal?: AbortSignal): Promise<Sound> {
  return codec.startsWith('amr_') ? hearPacked(path, index, signal) : hearStream(path, index, signal);
}

/** Phones put several AMR frames into a packet, of which ffmpeg 5.1 decodes the first; its raw format has them apart. */
async function hearPacked(path: string, index: number, signal?: AbortSignal): Promise<Sound> {
  const copy = ['-map', `0:${index}`, '-c', 'copy', '-f'];
  const [raw, listed] = await ffmpeg(
    ['-copyts', '-i', path, ...copy, 'amr', 'pipe:1', ...copy, 'framecrc', 'pipe:3'],
    signal,
  );
  const folder = await mkdtemp(join(tmpdir(), 'millrace-demo-sound-'));
  try {
    const file = join(folder, 'sound.amr');
    await writeFile(file, raw);
    const sound = await hearStream(file, 0, signal);
    return { ...sound, start: sound.start + (framesOf(listed)[0]?.time ?? 0) };
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function hearStream(path: string, streamIndex: number, signal?: AbortSignal): Promise<Sound> {
  const mono = `[0:${streamIndex}]aresample=${soundRate},aformat=s16:channel_layouts=mono,asplit[samples][times]`;
  const listen = async (clock: readonly string[]): Promise<Sound | null> => {
    const [samples, listed, complaints] = await ffmpeg(
      [
        ...[...clock, '-i', path, '-filter_complex', mono],
        ...['-map', '[samples]', '-f', 's16le', 'pipe:1'],
        ...['-map', '[times]', '-f', 'framecrc', 'pipe:3'],
      ],
      signal,
    );
    const frames = framesOf(listed);
    const [first, last] = [frames[0], frames.at(-1)];
    if (!first || !last) throw new Error(`no sound comes out of ${path}`);
    if (clock.length > 0 && jumps(frames.map(({ time }) => time))) return null;
    const seconds = last.time + last.seconds - first.time;
    return { start: first.time, seconds, loudness: loudnessOf(samples, frames, seconds), complaints };
  };
  const sound = (await listen(['-copyts'])) ?? (await listen([]));
  if (!sound) throw new Error(`the clock of the sound of ${path} cannot be followed`);
  return sound;
}

/** Each frame counts where its time puts it, so that gaps are silent. */
function loudnessOf(samples: Buffer, frames: readonly Frame[], seconds: number): number[] {
  const power = new Float64Array(Math.ceil(seconds / loudnessBlock) + 1);
  const start = frames[0]?.time ?? 0;
  let from = 0;
  for (const { time, bytes } of frames) {
    const place = Math.round((time - start) * soundRate);
    for (let i = 0; i < bytes / 2; i++) {
      const block = Math.floor((place + i) / samplesPerBlock);
      power[block] = (power[block] ?? 0) + (samples.readInt16LE(from + 2 * i) / 32768) ** 2;
    }
    from += bytes;
  }
  return Array.from(power, (sum) => Math.max(quietest, 10 * Math.log10(sum / samplesPerBlock)));
}

interface Frame {
  time: number;
  seconds: number;
  bytes: number;
}

/** Reads ffmpeg's framecrc format: `stream, dts, pts, duration, size, checksum` in units of `#tb`. */
function framesOf(listed: Buffer): Frame[] {
  const text = listed.toString('latin1');
  const [, numerator, denominator] = /^#tb 0: (\d+)\/(\d+)/m.exec(text) ?? [];
  const tick = Number(numerator) / Number(denominator);
  return text.split('\n').flatMap((line) => {
    if (line === '' || line.startsWith('#')) return [];
    const [, , pts = NaN, duration = NaN, bytes = NaN] = line.split(',').map(Number);
    return [{ time: pts * tick, seconds: duration * tick, bytes }];
  });
}
