import {
  encodeManifest,
  type EncodeManifest,
  type PlanNote,
  type TaskCommand,
  type TaskOptions,
} from '@millrace/domain';
import { type OpenSource } from '../source/block-reader.ts';
import { sourceKeyOf, type TaskContext } from './context.ts';
import { type Ran, runFfmpeg } from './run-ffmpeg.ts';

/** What came of a task's command. */
export interface Made {
  command: TaskCommand;
  /** What was run before it. */
  copy?: TaskCommand | null;
  /** False when the source gives nothing of the kind, and the video does without. */
  made: boolean;
  notes: PlanNote[];
}

/** Everything that making something needs. */
export interface Making {
  context: TaskContext;
  manifest: EncodeManifest;
  options: TaskOptions;
  source: OpenSource;
}

/** Opens a task's original and a folder to write in, and closes both when the work is over. */
export async function withSource<T>(context: TaskContext, work: (making: Making) => Promise<T>): Promise<T> {
  const { job, reader, scratch, config } = context;
  const manifest = encodeManifest.parse(job.manifest);
  const source = await reader.open(sourceKeyOf(context));
  const folder = await scratch.open();
  const options: TaskOptions = {
    inputUrl: source.url,
    outputDir: folder.path,
    threads: config.ENCODER_THREADS,
    preset: config.ENCODER_PRESET,
  };
  try {
    return await work({ context, manifest, options, source });
  } finally {
    source.close();
    await folder.remove();
  }
}

export const run = ({ context, manifest, source, options }: Making, command: TaskCommand): Promise<Ran> =>
  runFfmpeg(context, { manifest, source, command, folder: options.outputDir });

/** The arguments without the places of this attempt. */
export const repeatable = ({ args }: TaskCommand, { inputUrl, outputDir }: TaskOptions): string[] =>
  args.map((arg) => arg.replaceAll(inputUrl, '{input}').replaceAll(outputDir, '{folder}'));
