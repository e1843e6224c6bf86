import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { identifyProcess, isRunning } from './process-identity.ts';

/** What the holder does: `service` runs until it is stopped, `command` ends by itself within moments. */
export type LockRole = 'service' | 'command';

const holderSchema = z.object({
  pid: z.number().int().positive(),
  startedAt: z.string(),
  role: z.enum(['service', 'command']),
  token: z.string(),
});

/** Who holds a lock; `token` differs each time the lock is taken. */
export type LockHolder = z.infer<typeof holderSchema>;

/** Another living process holds the lock. */
export class LockHeldError extends Error {
  override readonly name = 'LockHeldError';
  readonly code = 'lock_held';
  readonly holder: LockHolder;
  constructor(path: string, holder: LockHolder) {
    super(`${path} is held by process ${holder.pid}`);
    this.holder = holder;
  }
}

export interface ProcessLock {
  /** Gives the lock up; harmless when it is not ours any more. */
  release(): void;
}

/**
 * Takes the lock file for this process, at once or not at all. A lock whose holder is dead, by whatever end, is taken
 * over; a holder in another process namespace counts as dead, which is why PostgreSQL's own interlock stays in force.
 * @throws LockHeldError when a living process holds it (this one included).
 */
export function takeLock(path: string, role: LockRole): ProcessLock {
  const self = identifyProcess(process.pid);
  if (!self) throw new Error('this process cannot find its own start time');
  const own: LockHolder = { ...self, role, token: randomUUID() };
  for (;;) {
    if (createWhole(path, JSON.stringify(own))) return { release: () => release(path, own) };
    const holder = lockHolder(path);
    if (holder === undefined) continue;
    if (holder !== 'unreadable' && isRunning(holder)) throw new LockHeldError(path, holder);
    removeStale(path, holder);
  }
}

/** Who the file names, living or not; `unreadable` when it is damaged, undefined when nobody holds the lock. */
function lockHolder(path: string): LockHolder | 'unreadable' | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return holderSchema.parse(JSON.parse(text));
  } catch {
    return 'unreadable';
  }
}

/** The file appears with its whole content or not at all: written aside, then linked, which never replaces. */
function createWhole(path: string, text: string): boolean {
  const aside = `${path}.${randomUUID()}`;
  writeFileSync(aside, text, { mode: 0o600 });
  try {
    linkSync(aside, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  } finally {
    rmSync(aside, { force: true });
  }
}

/**
 * Moves a dead holder's file out of the way. Between reading and moving, somebody else may have done the same and
 * taken the lock: then it is their file that was moved, and they get it back.
 */
function removeStale(path: string, dead: LockHolder | 'unreadable'): void {
  const aside = `${path}.${randomUUID()}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  const moved = lockHolder(aside);
  if (tokenOf(moved) !== tokenOf(dead)) linkSync(aside, path);
  rmSync(aside, { force: true });
}

function tokenOf(holder: LockHolder | 'unreadable' | undefined): string | undefined {
  return typeof holder === 'object' ? holder.token : holder;
}

function release(path: string, own: LockHolder): void {
  if (tokenOf(lockHolder(path)) === own.token) rmSync(path, { force: true });
}
