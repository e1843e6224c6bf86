import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type DeliveryIndex, type DeliveryTrack } from '@millrace/contract';
import {
  buildProbe,
  createPacketScan,
  type EncodeManifest,
  planEncode,
  probeArgs,
  readEdges,
  readProbeHeader,
  samplePackets,
  scanArgs,
  videoTaskArgs,
  wholeEncode,
} from '@millrace/domain';
import { createFfmpegProcess, type EncoderProcess } from './index.ts';
import { createEncodeBench, type EncodeBench, type EncodeResult } from './testing/encode-bench.ts';

const run = promisify(execFile);
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'millrace-chunks-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

const moving = (size: string, rate: string, seconds: number): string[] => [
  ...['-f', 'lavfi', '-i', `testsrc2=size=${size}:rate=${rate}:duration=${seconds},noise=alls=8:allf=t`],
];
const h264 = ['-c:v', 'libx264', '-preset', 'veryfast', '-pix_fmt', 'yuv420p'];

async function clip(name: string, ...args: string[]): Promise<string> {
  const file = path.join(folder, name);
  await run('ffmpeg', ['-v', 'error', '-y', ...args, file]);
  return file;
}

/** As the commands of the tasks are, but on a file. */
const onFile = (args: readonly string[]): string[] => args.map((arg) => (arg === 'http,tcp' ? 'file' : arg));
async function ffprobe(args: readonly string[]): Promise<string> {
  return (await run('ffprobe', onFile(args), { maxBuffer: 1e8 })).stdout;
}

async function planOf(file: string, chunkSeconds: number): Promise<EncodeManifest> {
  const header = readProbeHeader(await ffprobe(probeArgs(file, samplePackets.longer)));
  const scan = createPacketScan('mp4', header);
  scan.write(await ffprobe(scanArgs(file)));
  const planned = planEncode(buildProbe('mp4', header, scan.end()), { maxQuality: '720p', chunkSeconds });
  if (!planned.ok) throw new Error(planned.message);
  return planned.manifest;
}

const pictureLines = (text: string): string[] => text.split('\n').filter((line) => /^0,/.test(line));

/** Number and hash of every picture that a chunk's command gives its encoders, by rendition, and its edges. */
async function picturesOf(
  file: string,
  manifest: EncodeManifest,
  chunk: number,
): Promise<{ renditions: string[][]; edges: string }> {
  const command = videoTaskArgs(manifest, chunk, { inputUrl: file, outputDir: folder, threads: 1 });
  const files = manifest.renditions.map((_, i) => path.join(folder, `pictures-${i}.txt`));
  const outputs = files.flatMap((each, i) => [
    ...['-map', `[v${i}]`, '-fps_mode', 'passthrough', '-f', 'framehash', '-hash', 'md5', each],
  ]);
  const edgesAt = command.args.indexOf('[hashed]');
  const edges = edgesAt < 0 ? [] : command.args.slice(edgesAt - 1);
  await run('ffmpeg', onFile([...command.args.slice(0, command.args.indexOf('-map')), ...outputs, ...edges]));
  const texts = await Promise.all(files.map((each) => readFile(each, 'utf8')));
  return {
    renditions: texts.map(pictureLines),
    edges: command.edgesFile ? await readFile(path.join(folder, command.edgesFile), 'utf8') : '',
  };
}

describe('the pictures of chunks', () => {
  const sources: [string, () => Promise<string>][] = [
    [
      'reordered pictures at 29.97, and a key frame every two seconds',
      () => clip('ntsc.mp4', ...moving('320x180', '30000/1001', 20), ...h264, '-bf', '3', '-g', '60'),
    ],
    [
      'open groups of pictures',
      () =>
        clip('open.mp4', ...moving('320x180', '25', 20), ...h264, '-g', '75', '-x264-params', 'open-gop=1'),
    ],
    [
      'HEVC',
      () =>
        clip(
          'hevc.mp4',
          ...[...moving('320x180', '25', 16), '-c:v', 'libx265', '-preset', 'ultrafast'],
          ...['-x265-params', 'log-level=none:keyint=90', '-tag:v', 'hvc1'],
        ),
    ],
    [
      'woven fields',
      () =>
        clip(
          'fields.mp4',
          ...[
            ...moving('320x180', '50', 16),
            '-vf',
            'interlace',
            ...h264,
            '-flags',
            '+ildct+ilme',
            '-g',
            '50',
          ],
        ),
    ],
    [
      'a variable rate',
      () =>
        clip(
          'variable.mp4',
          ...[...moving('320x180', '30', 20), '-vf', "select='lt(t,9)+not(mod(n,3))'"],
          ...['-fps_mode', 'vfr', ...h264, '-g', '40'],
        ),
    ],
    [
      'a rate that is divided, in two renditions, sideways',
      async () => {
        const made = ['-f', 'lavfi', '-i', 'testsrc2=size=720x1280:rate=72:duration=9.1'];
        const upright = await clip('upright.mp4', ...made, ...h264, '-preset', 'ultrafast', '-g', '144');
        return clip('sideways.mp4', '-i', upright, '-c', 'copy', '-metadata:s:v', 'rotate=90');
      },
    ],
    [
      'sound that begins before the picture and ends after it',
      async () => {
        const silent = await clip('silent.mp4', ...moving('320x180', '25', 13), ...h264, '-g', '50');
        const tone = ['-f', 'lavfi', '-i', 'sine=duration=22'];
        return clip('held.mp4', '-itsoffset', '7', '-i', silent, ...tone, '-c:v', 'copy', '-c:a', 'aac');
      },
    ],
  ];

  it.each(sources)(
    'are those of the whole, one by one: %s',
    async (_, make) => {
      const file = await make();
      const manifest = await planOf(file, 6);
      expect(manifest.chunks.length).toBeGreaterThan(1);
      const whole = await picturesOf(file, wholeEncode(manifest), 0);
      const parts: Awaited<ReturnType<typeof picturesOf>>[] = [];
      for (const [index] of manifest.chunks.entries()) parts.push(await picturesOf(file, manifest, index));
      for (const [index, expected] of whole.renditions.entries()) {
        expect(expected).toHaveLength(manifest.frames);
        expect(parts.flatMap(({ renditions }) => renditions[index] ?? [])).toEqual(expected);
      }
      const edges = manifest.chunks.map((chunk, index) => readEdges(parts[index]?.edges ?? '', chunk));
      expect(edges[0]?.first).toMatch(/^[0-9a-f]{64}$/);
      expect(edges.slice(0, -1).map(({ afterLast }) => afterLast)).toEqual(
        edges.slice(1).map(({ first }) => first),
      );
      expect(edges.at(-1)?.afterLast).toBeNull();
    },
    60_000,
  );
});

async function encode(bench: EncodeBench, source: string): Promise<EncodeResult & { index: DeliveryIndex }> {
  const result = await bench.result(await bench.submit(await readFile(source)));
  expect(result.failureMessage).toBeNull();
  if (result.index === null) throw new Error('not ready');
  return { ...result, index: result.index };
}

const edgesOf = (track: DeliveryTrack): object => ({
  ...{ timescale: track.timescale, codec: track.codec },
  segments: track.segments.map(([, , , ticks]) => ticks),
});

describe('an encode in chunks', () => {
  const settings = { ENCODER_CHUNK_SECONDS: '6', ENCODER_PRESET: 'ultrafast' };
  const source = (size: string, seconds: number): Promise<string> =>
    clip(
      'source.mp4',
      ...[...moving(size, '30000/1001', seconds), '-f', 'lavfi', '-i', `sine=duration=${seconds}`],
      ...[...h264, '-g', '60', '-c:a', 'aac'],
    );

  it('has the segments, times and pictures of the whole, and one init segment', async () => {
    const [whole, chunked] = [
      await createEncodeBench({ ENCODER_PRESET: settings.ENCODER_PRESET }),
      await createEncodeBench(settings),
    ];
    try {
      const file = await source('640x360', 15);
      const one = await encode(whole, file);
      const many = await encode(chunked, file);
      const [oracle, joined] = [one.index.renditions[0], many.index.renditions[0]];
      if (oracle === undefined || joined === undefined) throw new Error('no rendition');
      expect(oracle.objects).toHaveLength(1);
      expect(joined.objects).toHaveLength(3);
      expect(joined.segments.map(([object]) => object)).toEqual([0, 1, 2]);
      expect(edgesOf(joined)).toEqual(edgesOf(oracle));
      expect(many.index.durationMs).toBe(one.index.durationMs);
      expect(many.index.audio.map(edgesOf)).toEqual(one.index.audio.map(edgesOf));

      const files = [path.join(folder, 'oracle.mp4'), path.join(folder, 'joined.mp4')] as const;
      await writeFile(files[0], await whole.fetch(oracle));
      await writeFile(files[1], await chunked.fetch(joined));
      expect(await decodedTimes(files[1])).toEqual(await decodedTimes(files[0]));
      expect(await leastLikeness(...files)).toBeGreaterThan(30);
    } finally {
      await Promise.all([whole.close(), chunked.close()]);
    }
  }, 120_000);

  it('runs whole when neighbours disagree, or when ffmpeg can make nothing of a chunk', async () => {
    const faults: ((folder: string, file: string) => Promise<void>)[] = [
      async (outputs) => {
        const edges = path.join(outputs, 'edges-1.txt');
        const text = await readFile(edges, 'utf8');
        await writeFile(edges, text.replace(/[0-9a-f]{64}/, '0'.repeat(64)));
      },
      async (_, file) => {
        await run('ffmpeg', ['-v', 'error', '-y', ...moving('320x180', '25', 1), ...h264, file]);
      },
    ];
    const file = await source('320x180', 12);
    for (const fault of faults) {
      const bench = await createEncodeBench(settings, { process: spoiling(fault) });
      try {
        const { index, notes } = await encode(bench, file);
        expect(index.renditions[0]?.objects).toHaveLength(1);
        expect(index.durationMs).toBe(12_012);
        expect(index.audio).toHaveLength(1);
        expect(notes).toContain('encoded_whole');
      } finally {
        await bench.close();
      }
    }
  }, 120_000);
});

/** ffmpeg as it is, and then something else than it wrote for the second chunk. */
function spoiling(fault: (outputs: string, file: string) => Promise<void>): EncoderProcess {
  const real = createFfmpegProcess();
  return {
    run: async (args, limits, options) => {
      const ran = await real.run(args, limits, options);
      const file = args.find((arg) => /video-1-.*\.mp4$/.test(arg));
      if (file !== undefined) await fault(path.dirname(file), file);
      return ran;
    },
  };
}

async function decodedTimes(file: string): Promise<string[]> {
  const { stdout } = await run('ffprobe', [
    ...['-v', 'error', '-show_entries', 'frame=pts,key_frame', '-of', 'csv=p=0', file],
  ]);
  return [...stdout.matchAll(/^[01],\d+/gm)].map(([line]) => line);
}

/** The lowest PSNR of any picture of one file and the same of the other, in decibels. */
async function leastLikeness(one: string, other: string): Promise<number> {
  const { stdout } = await run('ffmpeg', [
    ...['-v', 'error', '-i', one, '-i', other, '-lavfi', '[0][1]psnr=stats_file=-', '-f', 'null', '-'],
  ]);
  const values = [...stdout.matchAll(/psnr_avg:(\S+)/g)].map(([, value]) =>
    value === 'inf' ? 99 : Number(value),
  );
  expect(values).toHaveLength(450);
  return Math.min(...values);
}
