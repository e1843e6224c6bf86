/**
 * What the pipeline costs above ffmpeg itself: CPU seconds (user and system, of all processes) of a 60 s 1080p
 * encode through the encoder service, beside one bare ffmpeg command that makes the same renditions and sound
 * of the same file. Pictures are apart: the bare command makes none, so their task is taken out of the sum.
 *
 *   npm run encode --workspace bench [-- --seconds 60] [--preset veryfast]
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { encodeManifest, type EncodeManifest } from '@millrace/domain';
import startDatabases from '../../packages/testing/src/jest/global-setup.ts';
import stopDatabases from '../../packages/testing/src/jest/global-teardown.ts';
import { cpuSecondsOf } from './cpu.ts';

const run = promisify(execFile);

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    preset: { type: 'string', default: 'veryfast' },
  },
});
const seconds = Number(values.seconds);
const threads = availableParallelism();

/** Moving shapes, camera-like grain and a slow zoom; sound with speech's spectrum. */
async function makeSource(file: string): Promise<void> {
  await run('ffmpeg', [
    ...['-v', 'error', '-f', 'lavfi', '-i', `testsrc2=size=1920x1080:rate=30:duration=${seconds}`],
    ...['-f', 'lavfi', '-i', `anoisesrc=color=pink:duration=${seconds}:amplitude=0.3:seed=1`],
    ...['-vf', 'noise=alls=4:allf=t:all_seed=1,hue=H=t/5', '-pix_fmt', 'yuv420p'],
    ...['-colorspace', 'bt709', '-color_primaries', 'bt709', '-color_trc', 'bt709', '-color_range', 'tv'],
    ...['-c:v', 'libx264', '-preset', 'ultrafast', '-crf', '20', '-g', '60', '-threads', String(threads)],
    ...['-c:a', 'aac', '-ac', '2', '-movflags', '+faststart', file],
  ]);
}

/** What one would type by hand for these renditions: one decode, one split, the same encoders' settings. */
function bareArgs(manifest: EncodeManifest, file: string, folder: string): string[] {
  const { renditions, segmentFrames } = manifest;
  const labels = renditions.map((_, i) => `[s${i}]`).join('');
  const scales = renditions.map(({ width, height }, i) => `[s${i}]scale=${width}:${height}[v${i}]`);
  const fragments = ['-movflags', '+empty_moov+frag_keyframe+default_base_moof', '-f', 'mp4'];
  return [
    ...['-hide_banner', '-nostdin', '-v', 'error', '-y', '-threads', String(threads), '-i', file],
    ...['-filter_complex', `[0:v]split=${renditions.length}${labels};${scales.join(';')}`],
    ...renditions.flatMap(({ quality, crf, maxrate, bufsize }, i) => [
      ...['-map', `[v${i}]`, '-c:v', 'libx264', '-preset', values.preset, '-threads', String(threads)],
      ...[
        '-profile:v',
        'high',
        '-crf',
        String(crf),
        '-maxrate',
        String(maxrate),
        '-bufsize',
        String(bufsize),
      ],
      ...['-g', String(segmentFrames), '-keyint_min', String(segmentFrames), '-sc_threshold', '0'],
      ...fragments,
      path.join(folder, `bare-${quality}.mp4`),
    ]),
    ...manifest.audio.flatMap(({ bitrate }, i) => [
      ...['-map', `0:a:${i}`, '-c:a', 'aac', '-b:a', String(bitrate)],
      ...['-movflags', '+empty_moov+default_base_moof', '-frag_duration', '6000000', '-f', 'mp4'],
      path.join(folder, `bare-audio-${i}.mp4`),
    ]),
  ];
}

interface PipelineResult {
  cpuSeconds: number;
  picturesCpuSeconds: number;
  wallSeconds: number;
  manifest: unknown;
}

/** The encoder in a process of its own, so that its time and its children's can be told from all else. */
async function runPipeline(source: string, folder: string): Promise<PipelineResult> {
  const worker = fileURLToPath(new URL('./encode-pipeline.ts', import.meta.url));
  const child = spawn(process.execPath, [worker, source, folder, values.preset], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => (text += piece));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`the pipeline ended with code ${String(code)}`);
  return JSON.parse(text) as PipelineResult;
}

async function runBare(args: readonly string[]): Promise<{ cpuSeconds: number; wallSeconds: number }> {
  const before = await cpuSecondsOf('children');
  const startedAt = performance.now();
  await run('nice', ['-n', '10', 'ffmpeg', ...args]);
  return {
    cpuSeconds: (await cpuSecondsOf('children')) - before,
    wallSeconds: (performance.now() - startedAt) / 1000,
  };
}

const folder = await mkdtemp(path.join(tmpdir(), 'millrace-bench-encode-'));
await startDatabases();
try {
  const source = path.join(folder, 'source.mp4');
  await makeSource(source);
  const pipeline = await runPipeline(source, folder);
  const manifest = encodeManifest.parse(pipeline.manifest);
  const bare = await runBare(bareArgs(manifest, source, folder));
  const sourceBytes = (await readFile(source)).length;
  const rungs = manifest.renditions.map(({ quality }) => quality).join(', ');
  console.log(`source: ${seconds} s of 1920x1080, ${Math.round(sourceBytes / 1e6)} MB; renditions ${rungs}`);
  console.log(`pipeline: ${pipeline.cpuSeconds.toFixed(2)} CPU-s in ${pipeline.wallSeconds.toFixed(1)} s`);
  console.log(`  (pictures apart: ${pipeline.picturesCpuSeconds.toFixed(2)} CPU-s)`);
  console.log(`bare ffmpeg: ${bare.cpuSeconds.toFixed(2)} CPU-s in ${bare.wallSeconds.toFixed(1)} s`);
  console.log(`ratio: ${(pipeline.cpuSeconds / bare.cpuSeconds).toFixed(3)} (aim: at most 1.05)`);
} finally {
  await stopDatabases();
  await rm(folder, { recursive: true });
}
