import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { uptime } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { say, SetupError } from './say.mjs';

/** Kubernetes takes ten minutes to build, and half an hour on a busy machine. */
const LONGEST_WAIT_MS = 45 * 60_000;
const POLL_MS = 200;

/**
 * Runs `work` while holding the lock file, so that two set-ups never write the same folder at once. Waits for a
 * living holder; takes the lock over from a dead one. `work` gets a function to which it names the processes that it
 * starts: after a `kill -9` of this process, those still hold the lock for as long as they go on writing.
 */
export async function withLock(path, work) {
  mkdirSync(dirname(path), { recursive: true });
  const waitUntil = Date.now() + LONGEST_WAIT_MS;
  let told = false;
  while (!tryToTake(path)) {
    const holder = holderOf(path);
    if (holder === undefined) continue;
    const pid = livingProcess(holder);
    if (pid === undefined) {
      removeStale(path, holder);
      continue;
    }
    if (!told) say(`waiting for another set-up (process ${pid})`);
    told = true;
    if (Date.now() > waitUntil) {
      throw new SetupError(`another set-up holds ${path}; if process ${pid} is none, remove that file`);
    }
    await sleep(POLL_MS);
  }
  try {
    return await work((pid) => writeAtomically(path, `${process.pid} ${pid}\n`));
  } finally {
    rmSync(path, { force: true });
  }
}

/** The file appears with its content or not at all: written aside, then linked, which fails when it is there. */
function tryToTake(path) {
  const own = `${path}.${process.pid}`;
  writeFileSync(own, `${process.pid}\n`);
  try {
    linkSync(own, path);
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    return false;
  } finally {
    rmSync(own, { force: true });
  }
}

function writeAtomically(path, text) {
  const aside = `${path}.${process.pid}`;
  writeFileSync(aside, text);
  renameSync(aside, path);
}

/** The lock's text (process ids) and when it was taken; undefined when nobody holds it. */
function holderOf(path) {
  try {
    return { text: readFileSync(path, 'utf8'), since: statSync(path).mtimeMs };
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    return undefined;
  }
}

/** The first process of the holder that still runs. A lock from before the last boot has none. */
function livingProcess({ text, since }) {
  const bootedAt = Date.now() - uptime() * 1000;
  if (since < bootedAt) return undefined;
  const pids = text.trim().split(' ').map(Number);
  return pids.find((pid) => Number.isInteger(pid) && pid > 1 && pid !== process.pid && isAlive(pid));
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Moves the dead holder's file away; had somebody else done that and taken the lock meanwhile, gives it back. */
function removeStale(path, dead) {
  const aside = `${path}.stale.${process.pid}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if (error.code === 'ENOENT') return;
    throw error;
  }
  if (holderOf(aside)?.text !== dead.text) linkSync(aside, path);
  rmSync(aside, { force: true });
}
