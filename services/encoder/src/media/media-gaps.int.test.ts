import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  buildProbe,
  createPacketScan,
  type EncodeManifest,
  planEncode,
  probeArgs,
  readProbeHeader,
  samplePackets,
  scanArgs,
  videoTaskArgs,
} from '@millrace/domain';
import { silentLogger, systemClock } from '@millrace/platform';
import { createTestObjects, type TestObjects } from '@millrace/testing';
import { readCmafFile } from '../cmaf/cmaf-file.ts';
import { createFfmpegProcess } from '../process/fluent-ffmpeg-process.ts';
import { createFfprobe } from '../process/media-probe.ts';
import { BlockReader, type OpenSource } from '../source/block-reader.ts';
import { createEncodeBench, type EncodeBench } from '../testing/encode-bench.ts';
import { mediaPath } from '../testing/media-cases.ts';

const run = promisify(execFile);
const key = 'videos/vid_1/original/source';

let folder: string;
let objects: TestObjects;
let reader: BlockReader;
let source: OpenSource;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'millrace-gaps-'));
  objects = await createTestObjects();
  reader = new BlockReader({
    ...{ objects: objects.objects, clock: systemClock, logger: silentLogger, cacheBytes: 2 ** 22 },
  });
  await reader.listen();
  await objects.objects.put(key, await jumpWithGap());
  source = await reader.open(key);
});
afterAll(async () => {
  source.close();
  await reader.close();
  await objects.close();
  await rm(folder, { recursive: true });
});

/** Two seconds whose clock jumps after the first, and whose last half is shown 200 s late. */
async function jumpWithGap(): Promise<Buffer> {
  const [first, second] = [path.join(folder, 'first.ts'), path.join(folder, 'second.ts')];
  await run('ffmpeg', [
    ...['-v', 'error', '-f', 'lavfi', '-i', 'testsrc=s=640x360:r=30:d=1', '-f', 'lavfi', '-i', 'sine=d=1'],
    ...['-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '0', '-g', '1', '-pix_fmt', 'yuv420p'],
    ...['-c:a', 'aac', '-f', 'mpegts', first],
  ]);
  await run('ffmpeg', [
    ...['-v', 'error', '-copyts', '-i', first, '-c', 'copy'],
    ...['-bsf:v', 'setts=pts=if(gte(N\\,15)\\,PTS+90000*200\\,PTS):dts=DTS'],
    ...['-output_ts_offset', '100', '-f', 'mpegts', second],
  ]);
  return Buffer.concat([await readFile(first), await readFile(second)]);
}

const limits = { wallMs: 100_000, stallMs: 100_000, outputBytes: 2 ** 28 };
const signal = new AbortController().signal;

async function plan(): Promise<EncodeManifest> {
  const probed = async (args: string[]): Promise<string> => {
    let text = '';
    const bounds = { ...limits, memoryBytes: 2 ** 30, outputFolder: folder };
    await createFfprobe().run(args, bounds, { onText: (piece) => (text += piece), signal });
    return text;
  };
  const header = readProbeHeader(await probed(probeArgs(source.url, samplePackets.first)));
  const scan = createPacketScan('mpegts', header);
  scan.write(await probed(scanArgs(source.url)));
  const planned = planEncode(buildProbe('mpegts', header, scan.end()), { maxQuality: '2160p' });
  if (!planned.ok) throw new Error(planned.message);
  return planned.manifest;
}

describe('a long gap in a file whose clock jumps', () => {
  it('is filled without holding in memory what fills it', async () => {
    const manifest = await plan();
    expect(manifest).toMatchObject({ discontinuous: true, durationSeconds: 202 });
    const { args, frames } = videoTaskArgs(manifest, 0, {
      ...{ inputUrl: source.url, outputDir: folder, threads: 1, preset: 'ultrafast' },
    });
    // All at once would be 2 GB.
    await createFfmpegProcess().run(
      args,
      { ...limits, memoryBytes: 400 * 1024 ** 2, outputFolder: folder },
      { signal },
    );
    const made = await readCmafFile(path.join(folder, 'video-0-360p.mp4'));
    expect(made.fragments.reduce((sum, { samples }) => sum + samples, 0)).toBe(frames);
  }, 120_000);
});

describe('sound of which nothing is heard', () => {
  let bench: EncodeBench;
  beforeAll(async () => {
    bench = await createEncodeBench();
  });
  afterAll(() => bench.close());

  it('is left out, and the video plays without it: all of it before presentation zero', async () => {
    const avi = await readFile(mediaPath('xvid_mp3.avi'));
    // The header's rate of the sound, by which its times are reckoned: a million times too high.
    avi.writeUInt32LE(0x7fff_ffff, avi.indexOf('auds') + 24);
    const { status, index, notes } = await bench.result(await bench.submit(avi));
    expect([status, index?.audio]).toEqual(['ready', []]);
    expect(notes).toContain('sound_undecodable');
  });
});
