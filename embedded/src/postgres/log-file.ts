import { EventEmitter, once } from 'node:events';
import { closeSync, fstatSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Readable } from 'node:stream';

const LARGEST_BYTES = 5 * 1024 * 1024;
const KEPT_LINES = 50;
const LONGEST_LINE = 10_000;

/** A log file of bounded size: when it is full it becomes `<path>.1`, replacing the one before. */
export interface LogFile {
  /** Writes all that the stream brings, until it ends. */
  follow(stream: Readable): FollowedLog;
  close(): void;
}

/** What one stream has brought to a log file. */
export interface FollowedLog {
  /** The last lines so far, oldest first. */
  lines: readonly string[];
  /** Resolves when a line matches; never, when none does. */
  saw(pattern: RegExp): Promise<void>;
}

export function openLogFile(path: string, largestBytes: number = LARGEST_BYTES): LogFile {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  let file = openSync(path, 'a', 0o600);
  let size = fstatSync(file).size;
  let closed = false;

  const write = (chunk: Buffer): void => {
    if (closed) return;
    if (size > 0 && size + chunk.length > largestBytes) {
      closeSync(file);
      renameSync(path, `${path}.1`);
      file = openSync(path, 'a', 0o600);
      size = 0;
    }
    // Synchronous: PostgreSQL writes only a few lines, and none may be lost when this process ends.
    size += writeSync(file, chunk);
  };

  return {
    follow: (stream) => {
      stream.on('data', write);
      return keepLastLines(stream);
    },
    close: () => {
      if (!closed) closeSync(file);
      closed = true;
    },
  };
}

function keepLastLines(stream: Readable): FollowedLog {
  const lines: string[] = [];
  const found = new EventEmitter<{ lines: [] }>();
  let partial = '';
  stream.on('data', (chunk: Buffer) => {
    const complete = (partial + chunk.toString('utf8')).split('\n');
    partial = (complete.pop() ?? '').slice(-LONGEST_LINE);
    lines.push(...complete);
    lines.splice(0, lines.length - KEPT_LINES);
    found.emit('lines');
  });
  return {
    lines,
    saw: async (pattern) => {
      while (!lines.some((line) => pattern.test(line))) await once(found, 'lines');
    },
  };
}
