import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { z } from 'zod';

const run = promisify(execFile);

/**
 * Said of good JPEGs: full range has a pixel format of its own, and the decoder stops at the last block, before
 * the end marker.
 */
const harmless = /^.*(deprecated pixel format used|EOI missing, emulating|Last message repeated).*$/gm;

/** Decodes to raw bytes, and throws at any complaint of a decoder. */
async function decode(file: string, ...options: string[]): Promise<Buffer> {
  const { stdout, stderr } = await run(
    'ffmpeg',
    ['-v', 'warning', '-xerror', '-i', file, ...options, 'pipe:1'],
    { encoding: 'buffer', maxBuffer: 2 ** 30 },
  );
  const complaints = stderr.toString().replaceAll(harmless, '').trim();
  if (complaints !== '') throw new Error(`${file} does not decode cleanly: ${complaints}`);
  return stdout;
}

const side = 64;
const frameBytes = side * side * 3;

/** Decoded pictures, each shrunk to a small square of RGB, as a player shows them (turned, by their colour tags). */
export interface Pictures {
  count: number;
  /** RGB at a fraction of the width and the height. */
  at(frame: number, x: number, y: number): [number, number, number];
  /** The first picture that is almost white; -1 when none is. */
  firstWhite(): number;
}

export async function pictures(file: string): Promise<Pictures> {
  const scale = `scale=${side}:${side}:flags=area,format=rgb24`;
  const bytes = await decode(file, '-vf', scale, '-fps_mode', 'passthrough', '-f', 'rawvideo');
  const count = bytes.length / frameBytes;
  const place = (fraction: number): number => Math.min(side - 1, Math.floor(fraction * side));
  return {
    count,
    at: (frame, x, y) => {
      const offset = frame * frameBytes + (place(y) * side + place(x)) * 3;
      return [bytes[offset] ?? -1, bytes[offset + 1] ?? -1, bytes[offset + 2] ?? -1];
    },
    firstWhite: () => {
      for (let frame = 0; frame < count; frame++) {
        const own = bytes.subarray(frame * frameBytes, (frame + 1) * frameBytes);
        if (own.reduce((sum, value) => sum + value, 0) / frameBytes > 230) return frame;
      }
      return -1;
    },
  };
}

/** Share of pixels that are neither black nor white, of the worst picture: combs, where the scene is black and white. */
export async function greyShare(file: string, pictureBytes: number): Promise<number> {
  const luma = await decode(file, '-vf', 'extractplanes=y', '-fps_mode', 'passthrough', '-f', 'rawvideo');
  let worst = 0;
  for (let at = 0; at < luma.length; at += pictureBytes) {
    let grey = 0;
    for (const value of luma.subarray(at, at + pictureBytes)) if (value >= 70 && value <= 185) grey++;
    worst = Math.max(worst, grey / pictureBytes);
  }
  return worst;
}

export interface Sound {
  seconds: number;
  /** Start of the first 1 kHz tone in any channel, in seconds; NaN when there is none. */
  firstBeep(): number;
  /** Seconds that are neither silent nor nearly so. */
  soundingSeconds(): number;
}

const windowSeconds = 0.01;
const beepHertz = 1000;
const quietest = 0.05;

export async function sound(file: string, rate: number, channels: number): Promise<Sound> {
  const bytes = await decode(file, '-f', 'f32le', '-c:a', 'pcm_f32le');
  const samples = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  const length = samples.length / channels;
  return {
    seconds: length / rate,
    firstBeep: () => {
      const size = Math.round(windowSeconds * rate);
      const step = size / 4;
      const levels: number[] = [];
      for (let at = 0; at + size <= length; at += step) {
        const each = Array.from({ length: channels }, (_, channel) =>
          toneLevel((n) => samples[(Math.floor(at) + n) * channels + channel] ?? 0, size, rate),
        );
        levels.push(Math.max(...each));
      }
      const loudest = Math.max(...levels);
      if (loudest < quietest) return NaN;
      const first = levels.findIndex((level) => level > loudest / 2);
      // The window that is half filled with the tone has half of its level.
      return (first * step + size / 2) / rate;
    },
    soundingSeconds: () => {
      const size = Math.round(windowSeconds * rate) * channels;
      const windows = Math.floor(samples.length / size);
      const sounding = Array.from({ length: windows }, (_, i) =>
        samples.subarray(i * size, (i + 1) * size).some((sample) => Math.abs(sample) > quietest),
      );
      return sounding.filter(Boolean).length * windowSeconds;
    },
  };
}

/** Amplitude of the tone in a window, by its correlation with a sine and a cosine. */
function toneLevel(sample: (n: number) => number, size: number, rate: number): number {
  let [real, imaginary] = [0, 0];
  for (let n = 0; n < size; n++) {
    const phase = (2 * Math.PI * beepHertz * n) / rate;
    real += sample(n) * Math.cos(phase);
    imaginary += sample(n) * Math.sin(phase);
  }
  return (2 * Math.hypot(real, imaginary)) / size;
}

const described = z.object({
  packets: z.array(z.object({ flags: z.string() })),
  streams: z.tuple([
    z.object({
      codec_name: z.string(),
      profile: z.string(),
      width: z.int().optional(),
      height: z.int().optional(),
      pix_fmt: z.string().optional(),
      sample_aspect_ratio: z.string().optional(),
      color_space: z.string().optional(),
      color_transfer: z.string().optional(),
      color_primaries: z.string().optional(),
      color_range: z.string().optional(),
      sample_rate: z.coerce.number().optional(),
      channels: z.int().optional(),
      side_data_list: z.array(z.unknown()).optional(),
    }),
  ]),
});

/** What ffprobe says of the only stream, and which packets are key frames. */
export async function describeTrack(
  file: string,
): Promise<{ stream: z.infer<typeof described>['streams'][0]; keys: boolean[] }> {
  const { stdout } = await run(
    'ffprobe',
    ['-v', 'error', '-print_format', 'json', '-show_streams', '-show_entries', 'packet=flags', file],
    { maxBuffer: 2 ** 26 },
  );
  const { streams, packets } = described.parse(JSON.parse(stdout));
  return { stream: streams[0], keys: packets.map(({ flags }) => flags.startsWith('K')) };
}

/** Seconds of picture that decode from a damaged source. */
export async function decodableSeconds(file: string): Promise<number> {
  const { stdout } = await run('ffmpeg', [
    ...['-v', 'fatal', '-i', file, '-map', '0:v:0', '-f', 'null', '-progress', 'pipe:1', '-'],
  ]);
  const times = [...stdout.matchAll(/^out_time_us=(\d+)$/gm)].map(([, text]) => Number(text));
  return (times.at(-1) ?? 0) / 1e6;
}
