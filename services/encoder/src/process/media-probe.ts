import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { EncoderProcessError, type ProcessEnd, type ProcessLimits } from './encoder-process.ts';
import { StderrLines } from './stderr-lines.ts';
import { watch } from './watchdog.ts';

const confined = fileURLToPath(new URL('./confined.sh', import.meta.url));

/** Runs ffprobe, whose standard output is a stream of text. */
export interface MediaProbe {
  /**
   * Hands the output over piece by piece and resolves with standard error (bounded).
   * @throws {EncoderProcessError} as `EncoderProcess` does
   */
  run(
    args: readonly string[],
    limits: ProcessLimits,
    options: { onText: (text: string) => void; inputPosition?: () => number; signal: AbortSignal },
  ): Promise<{ stderr: string }>;
}

/** ffprobe, confined as ffmpeg is. `limits.outputBytes` counts its standard output. */
export const createFfprobe = (): MediaProbe => ({
  run: (args, limits, { onText, inputPosition, signal }) =>
    new Promise((resolve, reject) => {
      const child = spawn(confined, ['ffprobe', ...args], {
        cwd: limits.outputFolder,
        stdio: ['ignore', 'pipe', 'pipe'],
        signal,
        killSignal: 'SIGKILL',
      });
      const lines = new StderrLines();
      let failure: EncoderProcessError | undefined;
      const stop = (end: ProcessEnd, message: string): void => {
        failure ??= new EncoderProcessError(end, `ffprobe was stopped: ${message}`, lines.text());
        child.kill('SIGKILL');
      };
      const watchdog =
        child.pid === undefined
          ? undefined
          : watch(child.pid, limits, { position: inputPosition ?? (() => 0), onBreach: stop });

      let written = 0;
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        written += text.length;
        watchdog?.progressed();
        if (written > limits.outputBytes) stop('output', `it wrote more than ${limits.outputBytes} bytes`);
        else onText(text);
      });
      let rest = '';
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        const parts = (rest + text).split('\n');
        rest = (parts.pop() ?? '').slice(-1_000);
        for (const line of parts) lines.add(line);
      });
      child.on('error', (error) => {
        failure ??= new EncoderProcessError('spawn', error.message, '', { cause: error });
      });
      child.on('close', (code, killedBy) => {
        watchdog?.stop();
        if (rest !== '') lines.add(rest);
        if (signal.aborted) reject(signal.reason as Error);
        else if (failure) reject(failure);
        else if (killedBy !== null) {
          reject(
            new EncoderProcessError('signal', `ffprobe was killed with signal ${killedBy}`, lines.text()),
          );
        } else if (code !== 0) {
          reject(new EncoderProcessError('exit', `ffprobe exited with code ${String(code)}`, lines.text()));
        } else resolve({ stderr: lines.text() });
      });
    }),
});
