import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { say } from './say.mjs';

const TAIL_LINES = 30;
const KEPT_BYTES = 64 * 1024;

/**
 * Runs a command without showing its output; when it fails, the last lines are shown and `false` is the answer.
 * A signal to this process ends the command first, then this process, so that nothing goes on installing.
 * `onStart` gets the command's process id; the other options are those of `child_process.spawn`.
 */
export async function runQuietly(command, args, { onStart, ...options } = {}) {
  const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  if (child.pid !== undefined) onStart?.(child.pid);
  let output = '';
  const keep = (chunk) => {
    output = (output + chunk).slice(-KEPT_BYTES);
  };
  child.stdout.setEncoding('utf8').on('data', keep);
  child.stderr.setEncoding('utf8').on('data', keep);

  let stoppedBy;
  const stop = (signal) => {
    stoppedBy = signal;
    child.kill(signal);
  };
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  for (const signal of signals) process.on(signal, stop);

  const code = await new Promise((resolve) => {
    child.on('error', (error) => {
      keep(`${error.message}\n`);
      resolve(127);
    });
    child.on('close', (status) => resolve(status ?? 1));
  });

  for (const signal of signals) process.removeListener(signal, stop);
  if (stoppedBy) {
    process.kill(process.pid, stoppedBy);
    await new Promise(() => setTimeout(() => process.exit(1), 1000));
  }
  if (code === 0) return true;
  say(`${command} ${args.join(' ')} ended with code ${code}:`);
  process.stderr.write(`${output.trimEnd().split('\n').slice(-TAIL_LINES).join('\n')}\n`);
  return false;
}

/** The first of the folders' executables with that name, or undefined. */
export function findExecutable(folders, name) {
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
