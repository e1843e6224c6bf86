import { fileURLToPath } from 'node:url';
import ffmpeg, { type FfmpegCommand } from 'fluent-ffmpeg';
import {
  type EncoderProcess,
  EncoderProcessError,
  type ProcessEnd,
  type ProcessProgress,
} from './encoder-process.ts';
import { StderrLines } from './stderr-lines.ts';
import { watch, type Watchdog } from './watchdog.ts';

// The library keeps one path for the whole process, and no way to hand ffmpeg an environment: the script does.
ffmpeg.setFfmpegPath(fileURLToPath(new URL('./ffmpeg.sh', import.meta.url)));

/**
 * `EncoderProcess` by fluent-ffmpeg. The library is archived upstream; this file is all that touches it, and
 * only its plainest parts: ready-made arguments in, `start`, `stderr`, `error` and `end` out. Its `progress`
 * event must never be listened to: the first listener makes it run ffprobe on the input by itself, without the
 * lists of formats and protocols that keep a playlist in disguise from reading files.
 */
export const createFfmpegProcess = (): EncoderProcess => ({
  run: (args, limits, { onProgress, inputPosition, signal }) =>
    new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason as Error);
        return;
      }
      const command = commandOf(args, limits.outputFolder);
      const lines = new StderrLines();
      const progress: ProcessProgress = { frames: 0, seconds: 0 };
      let breach: { end: ProcessEnd; message: string } | undefined;
      let watchdog: Watchdog | undefined;

      const kill = (): void => {
        command.kill('SIGKILL');
      };
      const settle = (): void => {
        watchdog?.stop();
        signal.removeEventListener('abort', kill);
      };
      signal.addEventListener('abort', kill);
      command
        .on('start', () => {
          // Aborted while the library looked for ffmpeg: there was nothing to kill then.
          if (signal.aborted) kill();
          const pid = pidOf(command);
          if (pid === undefined) return;
          watchdog = watch(pid, limits, {
            position: inputPosition ?? (() => 0),
            onBreach: (end, message) => {
              breach = { end, message };
              kill();
            },
          });
        })
        .on('stderr', (line: string) => {
          const changed = readProgress(line, progress);
          if (changed === undefined) lines.add(line);
          if (changed === true) {
            watchdog?.progressed();
            onProgress?.({ ...progress });
          }
        })
        .on('end', () => {
          settle();
          resolve({ stderr: lines.text() });
        })
        .on('error', (error: Error) => {
          settle();
          if (signal.aborted) reject(signal.reason as Error);
          else if (breach) {
            reject(
              new EncoderProcessError(breach.end, `ffmpeg was stopped: ${breach.message}`, lines.text()),
            );
          } else
            reject(new EncoderProcessError(endOf(error), firstLine(error), lines.text(), { cause: error }));
        })
        .run();
    }),
});

/** The arguments as they are, but for where progress is told: the library hands on standard error only. */
function commandOf(given: readonly string[], folder: string): FfmpegCommand {
  const args = given.map((arg, i) => (given[i - 1] === '-progress' ? 'pipe:2' : arg));
  const input = args.indexOf('-i');
  const url = args[input + 1];
  const output = args.at(-1);
  if (input < 0 || url === undefined || output === undefined || args.length < input + 3) {
    throw new Error('an ffmpeg command needs an input and an output');
  }
  // Two or more at a time: a single one would be split at its space.
  return ffmpeg({ cwd: folder, stdoutLines: 1 })
    .input(url)
    .inputOptions('-nostdin', '-nostats', '-progress', 'pipe:2', ...args.slice(0, input))
    .output(output)
    .outputOptions('-y', ...args.slice(input + 2, -1));
}

/** The library keeps the child as `ffmpegProc` (undocumented; its own `kill` goes by it). */
const pidOf = (command: FfmpegCommand): number | undefined =>
  (command as FfmpegCommand & { ffmpegProc?: { pid?: number } }).ffmpegProc?.pid;

const endOf = (error: Error): ProcessEnd => {
  if (error.message.startsWith('ffmpeg was killed with signal')) return 'signal';
  return error.message.startsWith('ffmpeg exited with code') ? 'exit' : 'spawn';
};
const firstLine = (error: Error): string => error.message.split('\n', 1)[0] ?? 'ffmpeg failed';

/**
 * Takes a line of `-progress`: true when it says that more has been made, undefined when it is none of them.
 */
function readProgress(line: string, progress: ProcessProgress): boolean | undefined {
  const [, key, value] = /^(\w+)=\s*(\S*)$/.exec(line) ?? [];
  if (key === undefined) return undefined;
  if (key !== 'frame' && key !== 'out_time_us') return progressKeys.test(key) ? false : undefined;
  const number = Number(value);
  const [field, made] =
    key === 'frame' ? (['frames', number] as const) : (['seconds', number / 1e6] as const);
  if (!Number.isFinite(made) || made <= progress[field]) return false;
  progress[field] = made;
  return true;
}

const progressKeys =
  /^(fps|stream_\d+_\d+_(q|psnr\w*)|bitrate|total_size|out_time(_ms)?|dup_frames|drop_frames|speed|progress)$/;
