/**
 * What the pipeline costs above ffmpeg itself: CPU seconds (user and system, of all processes) of a 60 s 1080p
 * encode through the encoder service, beside one bare ffmpeg command that makes the same renditions and sound
 * of the same file. Pictures are apart: the bare command makes none, so their task is taken out of the sum. The
 * two take turns; PostgreSQL, which serves both the test and the encoder, is not counted.
 *
 *   npm run encode --workspace bench [-- --seconds 60] [--rounds 2] [--preset veryfast]
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type EncodeManifest, encodeManifest, videoTaskArgs } from '@millrace/domain';
import { readFlags } from '../../dev/flags.ts';
import startDatabases from '../../packages/testing/src/jest/global-setup.ts';
import stopDatabases from '../../packages/testing/src/jest/global-teardown.ts';
import { cpuSecondsOf } from './cpu.ts';

const run = promisify(execFile);

const { values } = readFlags('npm run bench:encode --', {
  options: {
    seconds: { type: 'string', default: '60' },
    preset: { type: 'string', default: 'veryfast' },
    rounds: { type: 'string', default: '2' },
  },
});
const seconds = Number(values.seconds);
const rounds = Number(values.rounds);
const threads = availableParallelism();

/** Neighbours on the machine only ever add: the least of several runs is nearest to what the work costs. */
const least = (times: readonly number[]): number => Math.min(...times);

/** Moving shapes, camera-like grain and a slow zoom; sound with speech's spectrum. */
async function makeSource(file: string): Promise<void> {
  await run('ffmpeg', [
    ...['-v', 'error', '-f', 'lavfi', '-i', `testsrc2=size=1920x1080:rate=30:duration=${seconds}`],
    ...['-f', 'lavfi', '-i', `anoisesrc=color=pink:duration=${seconds}:amplitude=0.3:seed=1`],
    ...['-vf', 'noise=alls=4:allf=t:all_seed=1,hue=H=t/5', '-pix_fmt', 'yuv420p'],
    ...['-colorspace', 'bt709', '-color_primaries', 'bt709', '-color_trc', 'bt709', '-color_range', 'tv'],
    // The bit rate of a phone's or a camera's 1080p.
    ...['-c:v', 'libx264', '-preset', 'superfast', '-b:v', '18M', '-maxrate', '24M', '-bufsize', '36M'],
    ...['-g', '60', '-threads', String(threads)],
    ...['-c:a', 'aac', '-ac', '2', '-movflags', '+faststart', file],
  ]);
}

/**
 * What one would type by hand: one decode, one split, a scaler for each rendition, and the very options of the
 * encoders that the pipeline uses, so that the renditions are the same.
 */
function bareArgs(manifest: EncodeManifest, file: string, outputDir: string): string[] {
  const { renditions } = manifest;
  const planned = videoTaskArgs(manifest, 0, {
    inputUrl: '',
    outputDir,
    threads,
    preset: values.preset,
  }).args;
  const encoders = planned.slice(planned.indexOf('-filter_complex') + 2);
  const labels = renditions.map((_, i) => `[s${i}]`).join('');
  const scales = renditions.map(({ width, height }, i) => `[s${i}]scale=${width}:${height}[v${i}]`);
  return [
    ...['-hide_banner', '-nostdin', '-v', 'error', '-y', '-threads', String(threads), '-i', file],
    ...['-filter_complex', `[0:v]split=${renditions.length}${labels};${scales.join(';')}`],
    ...encoders,
    ...manifest.audio.flatMap(({ bitrate, channels, sampleRate }, i) => [
      ...['-map', `0:a:${i}`, '-c:a', 'aac', '-b:a', String(bitrate)],
      ...['-ac', String(channels), '-ar', String(sampleRate)],
      ...['-movflags', '+empty_moov+default_base_moof', '-frag_duration', '6000000', '-f', 'mp4'],
      path.join(outputDir, `bare-audio-${i}.mp4`),
    ]),
  ];
}

interface BareResult {
  cpuSeconds: number;
  wallSeconds: number;
}

interface PipelineResult extends BareResult {
  picturesCpuSeconds: number;
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

async function runBare(args: readonly string[]): Promise<BareResult> {
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
  const pipelines: PipelineResult[] = [];
  const bares: BareResult[] = [];
  for (let round = 0; round < rounds; round++) {
    const pipeline = await runPipeline(source, folder);
    pipelines.push(pipeline);
    bares.push(await runBare(bareArgs(encodeManifest.parse(pipeline.manifest), source, folder)));
  }
  const { renditions } = encodeManifest.parse(pipelines[0]?.manifest);
  const megabytes = Math.round((await stat(source)).size / 1e6);
  const rungs = renditions.map(({ quality }) => quality).join(', ');
  console.log(`source: ${seconds} s of 1920x1080, ${megabytes} MB; renditions ${rungs}`);
  const show = (name: string, results: readonly BareResult[]): void => {
    const texts = results.map(
      (each) => `${each.cpuSeconds.toFixed(2)} CPU-s in ${each.wallSeconds.toFixed(0)} s`,
    );
    console.log(`${name}: ${texts.join('; ')}`);
  };
  show('pipeline', pipelines);
  show('bare ffmpeg', bares);
  console.log(`pictures, apart: ${least(pipelines.map((each) => each.picturesCpuSeconds)).toFixed(2)} CPU-s`);
  const cpu = (results: readonly BareResult[]): number => least(results.map((each) => each.cpuSeconds));
  console.log(`ratio: ${(cpu(pipelines) / cpu(bares)).toFixed(3)} (aim: at most 1.05)`);
} finally {
  await stopDatabases();
  await rm(folder, { recursive: true });
}
