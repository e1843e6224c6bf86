import { mkdir, mkdtemp, readdir, rm, statfs } from 'node:fs/promises';
import path from 'node:path';

interface ScratchFolder {
  path: string;
  /** Removes it with all that is in it. */
  remove(): Promise<void>;
}

export interface Scratch {
  /** A new, empty folder for one attempt. */
  open(): Promise<ScratchFolder>;
  /** Whether the disk has as many bytes free as an attempt should find. */
  hasRoom(): Promise<boolean>;
}

/** Folders that this process uses now, by name. */
const inUse = new Set<string>();
const ownName = /^attempt-(\d+)-/;

/**
 * Where attempts write. What a killed encoder left there is removed first, and nothing of a living one: its
 * folders name its process.
 *
 * @param spareBytes what must be free for `hasRoom`
 */
export async function openScratch(base: string, spareBytes: number): Promise<Scratch> {
  await mkdir(base, { recursive: true, mode: 0o700 });
  for (const name of await readdir(base)) {
    const pid = ownName.exec(name)?.[1];
    if (pid === undefined || inUse.has(name) || isAnothers(Number(pid))) continue;
    await rm(path.join(base, name), { recursive: true, force: true });
  }
  return {
    hasRoom: async () => {
      const { bavail, bsize } = await statfs(base);
      return bavail * bsize >= spareBytes;
    },
    open: async () => {
      const folder = await mkdtemp(path.join(base, `attempt-${process.pid}-`));
      inUse.add(path.basename(folder));
      return {
        path: folder,
        remove: async () => {
          await rm(folder, { recursive: true, force: true });
          inUse.delete(path.basename(folder));
        },
      };
    },
  };
}

/** A living process other than this one. In a container each encoder has the same id as the one before it. */
function isAnothers(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
