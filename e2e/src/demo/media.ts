import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { z } from 'zod';

const run = promisify(execFile);
const outputLimit = 64 * 1024 * 1024;

const stream = z.object({
  index: z.number(),
  codec_type: z.string().optional(),
  codec_name: z.string().optional(),
  width: z.number().optional(),
  height: z.number().optional(),
  sample_aspect_ratio: z.string().optional(),
  avg_frame_rate: z.string().optional(),
  r_frame_rate: z.string().optional(),
  disposition: z.object({ attached_pic: z.number() }).optional(),
  side_data_list: z.array(z.object({ rotation: z.number().optional() })).optional(),
});
type Stream = z.output<typeof stream>;
const probeOutput = z.object({ streams: z.array(stream) });

export interface Size {
  width: number;
  height: number;
}

/** What a file shows: its picture as displayed (rotation and pixel aspect applied) and whether it has sound. */
export interface Shown {
  index: number;
  display: Size;
  frameRate: number;
  /** True when the container says that the rate varies: then only the count of pictures can be compared. */
  variableRate: boolean;
  hasSound: boolean;
}

const ratio = (text: string | undefined, separator: string): number => {
  const [a = NaN, b = NaN] = (text ?? '').split(separator).map(Number);
  return a > 0 && b > 0 ? a / b : NaN;
};

/** @throws Error when the file has no moving picture */
export async function probe(path: string): Promise<Shown> {
  const { stdout } = await run('ffprobe', ['-v', 'error', '-of', 'json', '-show_streams', path], {
    maxBuffer: outputLimit,
  });
  const { streams } = probeOutput.parse(JSON.parse(stdout));
  const video = streams.find((one) => one.codec_type === 'video' && one.disposition?.attached_pic !== 1);
  if (!video) throw new Error(`${path} has no moving picture`);
  const [average, base] = [ratio(video.avg_frame_rate, '/'), ratio(video.r_frame_rate, '/')];
  return {
    index: video.index,
    display: displayOf(video),
    frameRate: average,
    variableRate: !(Math.abs(average - base) < 0.001 * average),
    hasSound: streams.some((one) => one.codec_type === 'audio' && one.codec_name !== undefined),
  };
}

function displayOf({ width = 0, height = 0, sample_aspect_ratio, side_data_list = [] }: Stream): Size {
  const pixel = ratio(sample_aspect_ratio, ':');
  const shown = { width: Number.isNaN(pixel) ? width : width * pixel, height };
  const rotation = side_data_list.find((data) => data.rotation !== undefined)?.rotation ?? 0;
  return Math.abs(rotation) % 180 === 90 ? { width: shown.height, height: shown.width } : shown;
}

/**
 * Decodes one stream to its end and counts what comes out.
 * @param filter a video filter, such as `fps=25`
 * @returns the pictures, and what the decoder complained of
 */
export async function decode(
  path: string,
  { map = '0:v:0', filter }: { map?: string; filter?: string } = {},
): Promise<{ frames: number; complaints: string }> {
  const filters = filter === undefined ? ['-fps_mode', 'passthrough'] : ['-vf', filter];
  const { stdout, stderr } = await run(
    'ffmpeg',
    [
      '-nostdin',
      '-v',
      'error',
      '-i',
      path,
      '-map',
      map,
      ...(map.includes('a') ? [] : filters),
      '-progress',
      'pipe:1',
      '-f',
      'null',
      '-',
    ],
    { maxBuffer: outputLimit },
  );
  const frames = Number([...stdout.matchAll(/^frame=\s*(\d+)/gm)].at(-1)?.[1] ?? 0);
  return { frames, complaints: stderr.trim() };
}
