import { readFile } from 'node:fs/promises';
import path from 'node:path';
import {
  audioTaskArgs,
  classifyVideoError,
  type EncodeManifest,
  isUndecodableSound,
  type PlanNote,
  readEdges,
  soundCopyArgs,
  type TaskCommand,
  videoTaskArgs,
} from '@millrace/domain';
import { type Metrics, reachPhase } from '@millrace/platform';
import { type FinishOutcome, finishTask } from '@millrace/store';
import { readCmafFile } from '../cmaf/cmaf-file.ts';
import { patiently } from '../work/patience.ts';
import { sourceTrouble } from '../work/trouble.ts';
import { patience, type TaskContext } from './context.ts';
import { type Made, type Making, repeatable, run, withSource } from './making.ts';
import { type MediaOutput } from './outputs.ts';
import { makePictures } from './pictures.ts';
import { type Ran } from './run-ffmpeg.ts';
import { storeOutputs } from './store-outputs.ts';

/** Makes one chunk of video, one sound track or the pictures: runs ffmpeg, checks and stores what it wrote. */
export const mediaTask = (context: TaskContext): Promise<FinishOutcome> => withSource(context, makeAndStore);

const speedOf = (metrics: Metrics) =>
  metrics.histogram(
    'millrace_encode_speed',
    'Seconds of the source for each second of an attempt that made something.',
    [0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64],
    ['kind'],
  );

async function makeAndStore(making: Making): Promise<FinishOutcome> {
  const { context, manifest, options } = making;
  const { task, store, clock, metrics } = context;
  const startedAt = clock.now().getTime();
  const { command, copy, made, notes } = await make(making);
  const seconds = (clock.now().getTime() - startedAt) / 1000;
  const { prefix, ...stored } = await storeOutputs(context, {
    manifest,
    folder: options.outputDir,
    outputs: made ? command.outputs : [],
  });
  const copied = copy ? { copyArgs: repeatable(copy, options) } : {};
  const edges = await edgesOf(making, command);
  const args = repeatable(command, options);
  const output: MediaOutput = { ...stored, ...edges, ...posterWish(context), args, ...copied };
  const bytes = [...stored.tracks, ...stored.files].reduce((sum, each) => sum + each.bytes, 0);
  const speed = Math.round((100 * lengthOf(manifest, command)) / Math.max(seconds, 0.01)) / 100;
  speedOf(metrics).observe(speed, { kind: task.kind });
  const report = { [`${task.kind}-${task.index}`]: { seconds, speed, bytes, notes } };
  reachPhase('task.stored', () => ({ taskId: task.id, fence: task.fence, kind: task.kind }));
  return patiently(patience(context), () => finishTask(store, task, { prefix, output, report }));
}

/** Seconds of the source that a command makes something of: those of a chunk, else all. */
const lengthOf = (
  { frameRate: [num, den], durationSeconds }: EncodeManifest,
  { frames }: TaskCommand,
): number => (frames === null ? durationSeconds : (frames * den) / num);

/** Which wish the pictures were made by: there may be another by the time that the encode is done. */
const posterWish = ({ task, job: { posterAtSeconds } }: TaskContext): Pick<MediaOutput, 'posterAtSeconds'> =>
  task.kind === 'images' ? { posterAtSeconds } : {};

async function edgesOf(
  { context, manifest, options }: Making,
  { edgesFile }: TaskCommand,
): Promise<Pick<MediaOutput, 'edges'>> {
  const chunk = manifest.chunks[context.task.index];
  if (edgesFile === undefined || chunk === undefined) return {};
  return { edges: readEdges(await readFile(path.join(options.outputDir, edgesFile), 'utf8'), chunk) };
}

function make(making: Making): Promise<Made> {
  switch (making.context.task.kind) {
    case 'video':
      return makeVideo(making);
    case 'audio':
      return makeSound(making);
    default:
      return makePictures(making);
  }
}

/** ffmpeg goes on after what it cannot decode; the filters fill the gap. */
const damage = (ran: Ran, what: string): PlanNote[] =>
  /Error while decoding|Invalid data found|error while decoding/.test(ran.stderr)
    ? [{ code: `${what}_damaged`, text: `Parts of the ${what} could not be decoded and were bridged.` }]
    : [];

async function makeVideo(making: Making): Promise<Made> {
  const command = videoTaskArgs(making.manifest, making.context.task.index, making.options);
  const ran = await run(making, command);
  if (ran.ok) return { command, made: true, notes: damage(ran, 'picture') };
  const failure = classifyVideoError(ran.stderr);
  if (failure === null) throw ran.error ?? new Error('ffmpeg failed');
  making.context.logger.info({ stderr: ran.stderr }, 'source cannot be decoded');
  throw sourceTrouble({ code: failure.code, message: failure.message }, failure.kind);
}

/** Sound that cannot be decoded is left out: the video plays silent (contract ENC-011). */
async function makeSound(making: Making): Promise<Made> {
  const { manifest, options } = making;
  const { index } = making.context.task;
  const copy = soundCopyArgs(manifest, index, options);
  const command = audioTaskArgs(manifest, index, options);
  const copied = copy === null ? null : await run(making, copy);
  const ran = copied?.ok === false ? copied : await run(making, command);
  if (ran.ok && (await isSound(making, command))) {
    return { command, copy, made: true, notes: damage(ran, 'sound') };
  }
  if (!ran.ok && !isUndecodableSound(ran.stderr)) throw ran.error ?? new Error('ffmpeg failed');
  making.context.logger.info({ stderr: ran.stderr }, 'sound cannot be decoded');
  const text = 'The sound could not be decoded and was left out: the video plays without it.';
  return { command, made: false, notes: [{ code: 'sound_undecodable', text }] };
}

/**
 * Whether there is sound in what ffmpeg wrote. Where none of it decodes, or all of it lies before presentation
 * zero, ffmpeg (5.1) ends well all the same, with a silence that does not begin at zero.
 */
async function isSound({ options }: Making, { outputs }: TaskCommand): Promise<boolean> {
  const { fragments } = await readCmafFile(path.join(options.outputDir, outputs[0]?.file ?? ''));
  return fragments[0]?.startTicks === 0;
}
