import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { say } from './say.mjs';

const PARENT_CHECK_MS = 500;

/**
 * Runs the entry under the project's Node.js and ends as it ended: with its exit code, or by its signal.
 *
 * The entry stays in this process group, so a terminal's Ctrl-C reaches it directly; npm and this process pass the
 * signal on as well, for it may have been sent to one of them alone. Entries therefore treat signals that come
 * within a moment as one. When this process or the npm above it is killed, the entry gets SIGTERM.
 */
export async function launch(node, args, { cwd }) {
  const follow = new URL('follow-parent.mjs', import.meta.url).href;
  const child = spawn(node, ['--import', follow, ...args], {
    cwd,
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  const passOn = (signal) => child.kill(signal);
  for (const signal of signals) process.on(signal, passOn);
  const watch = whenParentGone(() => child.kill('SIGTERM'));

  const { code, signal } = await new Promise((resolve) => {
    child.on('error', (error) => {
      say(`${node} does not start: ${error.message}`);
      resolve({ code: 1, signal: null });
    });
    child.on('exit', (code, signal) => resolve({ code, signal }));
  });

  clearInterval(watch);
  for (const name of signals) process.removeListener(name, passOn);
  if (signal === null) {
    process.exitCode = code;
    return;
  }
  process.exitCode = 128 + (constants.signals[signal] ?? 0);
  if (signals.includes(signal)) process.kill(process.pid, signal);
}

/** npm is above this process only to start it: when it is killed, nobody is left who would pass signals on. */
function whenParentGone(act) {
  if (!process.env.npm_lifecycle_event) return undefined;
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    act();
  }, PARENT_CHECK_MS);
  return watch.unref();
}
