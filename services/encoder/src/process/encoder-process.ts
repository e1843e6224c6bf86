/** Bounds of one run; over any of them the process is killed and the run rejects. */
export interface ProcessLimits {
  /** From start to end, in milliseconds. */
  wallMs: number;
  /** Without any progress, in milliseconds. Longer than the block reader's retries. */
  stallMs: number;
  /** Resident memory of the process. */
  memoryBytes: number;
  /** All files in `outputFolder` together. */
  outputBytes: number;
  /** Where the process writes; also its working folder. */
  outputFolder: string;
}

export interface ProcessProgress {
  /** Frames made so far, of the first picture output; 0 where there is none. */
  frames: number;
  /** Media seconds made so far. */
  seconds: number;
}

interface RunOptions {
  onProgress?: (progress: ProcessProgress) => void;
  /** A number that changes while the process reads on: progress too, though nothing is written yet. */
  inputPosition?: () => number;
  /** Kills the process; the run rejects with the signal's reason. */
  signal: AbortSignal;
}

/** Runs ffmpeg. One adapter wraps fluent-ffmpeg, nothing else in the project knows of it. */
export interface EncoderProcess {
  /**
   * Runs to the end and resolves with what was written to standard error (bounded; its first and last lines).
   * @throws {EncoderProcessError} when it did not end well
   */
  run(args: readonly string[], limits: ProcessLimits, options: RunOptions): Promise<{ stderr: string }>;
}

export type ProcessEnd =
  /** It said no by itself, with an exit code. */
  | 'exit'
  /** It crashed, or somebody else killed it. */
  | 'signal'
  /** It could not be started. */
  | 'spawn'
  /** One of the limits. */
  | 'wall'
  | 'stall'
  | 'memory'
  | 'output';

export class EncoderProcessError extends Error {
  override readonly name = 'EncoderProcessError';
  readonly code = 'encoder_process';
  readonly end: ProcessEnd;
  readonly stderr: string;
  constructor(end: ProcessEnd, message: string, stderr: string, options?: ErrorOptions) {
    super(message, options);
    this.end = end;
    this.stderr = stderr;
  }
}
