import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rename, rm, rmdir } from 'node:fs/promises';
import path from 'node:path';
import { orNull } from './files.ts';

/** Names of the temporary folders that this process uses now. */
const inUse = new Set<string>();

/**
 * Where files are written before they take their place, and where what is deleted is moved first. Each opened
 * store has its own, named by its process, so that a start can sweep what a killed process left and nothing of a
 * living one (the command line may work on the folder of a running service).
 */
export interface TempFolder {
  /** A new, empty file. */
  create(): Promise<{ path: string; file: FileHandle }>;
  /** A path that does not exist yet. */
  newPath(): string;
  /** Removes a file or a whole folder, in one step as seen from its place; absent is fine. */
  discard(target: string): Promise<void>;
  close(): Promise<void>;
}

/** Makes this store's own folder under `base`, and removes those of processes that are gone. */
export async function openTempFolder(base: string): Promise<TempFolder> {
  for (const name of await readdir(base)) {
    if (!isAlive(name)) await rm(path.join(base, name), { recursive: true, force: true });
  }
  const name = `${process.pid}-${randomBytes(8).toString('hex')}`;
  const folder = path.join(base, name);
  inUse.add(name);
  await mkdir(folder);
  const newPath = (): string => path.join(folder, randomBytes(12).toString('hex'));
  return {
    newPath,
    create: async () => {
      const file = newPath();
      const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL;
      return { path: file, file: await open(file, flags, 0o600) };
    },
    discard: async (target) => {
      const doomed = newPath();
      const moved = await orNull(
        ['ENOENT', 'ENOTDIR'],
        rename(target, doomed).then(() => true),
      );
      if (moved) await rm(doomed, { recursive: true, force: true });
    },
    close: async () => {
      inUse.delete(name);
      // What is still being written stays for the next start's sweep.
      await orNull(['ENOTEMPTY', 'EEXIST', 'ENOENT'], rmdir(folder));
    },
  };
}

function isAlive(name: string): boolean {
  const pid = Number(name.split('-')[0]);
  if (pid === process.pid) return inUse.has(name);
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it lives, under another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
