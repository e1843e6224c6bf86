import { type EncodeManifest, type TaskCommand } from '@millrace/domain';
import { type OpenSource } from '../source/block-reader.ts';
import { EncoderProcessError } from '../process/encoder-process.ts';
import { limitsFor, type TaskContext } from './context.ts';

const mebibyte = 1024 ** 2;

/** Not the file's fault, whatever else ffmpeg says then. */
const diskFull = /No space left on device|Disk quota exceeded/;

/** How an ffmpeg that ran to its own end ended. */
export interface Ran {
  /** True when it ended with success. */
  ok: boolean;
  stderr: string;
  error?: EncoderProcessError;
}

/**
 * Runs one command on the source. Resolves when ffmpeg ended by itself, well or not: what its refusal means
 * depends on the task.
 *
 * @throws when it was stopped or crashed, or when the store did not give all of the source
 */
export async function runFfmpeg(
  context: TaskContext,
  {
    manifest,
    command,
    source,
    folder,
  }: {
    manifest: EncodeManifest;
    command: TaskCommand;
    source: OpenSource;
    folder: string;
  },
): Promise<Ran> {
  const limits = limitsFor(context, {
    outputFolder: folder,
    workMs: manifest.durationSeconds * 1000 * context.config.ENCODER_MAX_SECONDS_PER_SECOND,
    outputBytes: expectedBytes(manifest, command),
  });
  const options = { signal: context.signal, inputPosition: () => source.servedBytes() };
  try {
    const { stderr } = await context.process.run(command.args, limits, options);
    assertWhole(source);
    return { ok: true, stderr };
  } catch (error) {
    context.signal.throwIfAborted();
    assertWhole(source);
    const refused = error instanceof EncoderProcessError && error.end === 'exit';
    if (!refused || diskFull.test(error.stderr)) throw error;
    return { ok: false, stderr: error.stderr, error };
  }
}

/** What a process made of a source that the store did not give whole means nothing. */
export function assertWhole(source: OpenSource): void {
  const failure = source.failure();
  if (failure !== undefined) throw failure;
}

/** Far above what the rate control lets through, and far below a run-away. */
function expectedBytes({ renditions, audio, durationSeconds }: EncodeManifest, command: TaskCommand): number {
  const bitsPerSecond = command.outputs.map(({ kind, index }) => {
    if (kind === 'rendition') return renditions[index]?.maxrate ?? 0;
    return kind === 'audio' ? (audio[index]?.bitrate ?? 0) : 0;
  });
  const total = bitsPerSecond.reduce((sum, rate) => sum + rate, 0);
  return 64 * mebibyte + Math.ceil((1.5 * total * durationSeconds) / 8);
}
