import { lstat, mkdir, open, readdir, realpath, rename, rmdir } from 'node:fs/promises';
import path from 'node:path';
import { ObjectStoreError } from '../object-store.ts';

/** The code of a file system error (`ENOENT`, …), else undefined. */
function errorCode(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

/** The work's result, or null when it fails with one of these codes. */
export async function orNull<T>(codes: readonly string[], work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (codes.includes(errorCode(error) ?? '')) return null;
    throw error;
  }
}

/** The caller's own stream failed, not the folder: its error is the cause, and is what the caller gets to see. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
}

/** A file system's error as the port's; the caller's and the port's own stay. */
export function translate(error: unknown): unknown {
  if (error instanceof SourceError) return error.cause;
  if (error instanceof ObjectStoreError || errorCode(error) === undefined) return error;
  return new ObjectStoreError('unavailable', `the object folder failed: ${String(errorCode(error))}`, {
    cause: error,
  });
}

/** Makes the names in a folder durable: renames and removals in it survive a power cut after this. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Refuses a folder that is reached through a symbolic link: what lies behind it may be outside the root. */
export async function assertNoLink(folder: string): Promise<void> {
  if ((await realpath(folder)) !== folder) {
    throw new ObjectStoreError('unavailable', 'a symbolic link inside the object folder is not followed');
  }
}

/** Makes `folder` and what is missing between `base` and it, durably. Never makes anything behind a link. */
async function makeFolders(base: string, folder: string): Promise<void> {
  let current = base;
  for (const name of path.relative(base, folder).split(path.sep)) {
    current = path.join(current, name);
    const made = await orNull(
      ['EEXIST'],
      mkdir(current).then(() => true),
    );
    if (made) await syncFolder(path.dirname(current));
    else await assertNoLink(current);
  }
}

/** Removes folders that hold nothing but empty folders; false when there is a file somewhere below. */
async function removeEmpty(folder: string): Promise<boolean> {
  for (const entry of (await orNull(['ENOENT'], readdir(folder, { withFileTypes: true }))) ?? []) {
    if (!entry.isDirectory() || !(await removeEmpty(path.join(folder, entry.name)))) return false;
  }
  return removeIfEmpty(folder);
}

/** False when it holds something; a folder that another call removed first counts as removed. */
async function removeIfEmpty(folder: string): Promise<boolean> {
  try {
    await rmdir(folder);
    return true;
  } catch (error) {
    const code = errorCode(error) ?? '';
    if (['ENOTEMPTY', 'EEXIST'].includes(code)) return false;
    if (code === 'ENOENT') return true;
    throw error;
  }
}

/** Removes empty folders from `folder` upwards, never `base` itself. Returns the nearest one that stays. */
export async function pruneUpwards(base: string, folder: string): Promise<string> {
  let current = folder;
  while (current !== base && (await removeIfEmpty(current))) current = path.dirname(current);
  return current;
}

/** Deleting prunes empty folders, perhaps the one just made here: it is made again, this often at most. */
const maxAttempts = 10;

/**
 * Moves a finished file to its place under `base`, atomically and durably, over what was there.
 * @throws {ObjectStoreError} `invalid_key` when the place is a folder, or lies below a file
 */
export async function publish(file: string, base: string, target: string): Promise<void> {
  const folder = path.dirname(target);
  for (let attempt = 1; ; attempt += 1) {
    try {
      await assertNoLink(folder);
      await rename(file, target);
      break;
    } catch (error) {
      const code = errorCode(error);
      const again = attempt < maxAttempts;
      if (code === 'ENOENT' && again)
        await orNull(['ENOENT'], makeFolders(base, folder)).catch(refuseConflict);
      else if (code === 'EISDIR' && again && (await removeEmpty(target))) continue;
      else refuseConflict(error);
    }
  }
  await syncFolder(folder);
}

/** @throws {ObjectStoreError} `invalid_key` when `publish` could not place a file here */
export async function assertPlaceFree(target: string): Promise<void> {
  const found = await orNull(['ENOENT'], lstat(target)).catch(refuseConflict);
  if (!found?.isDirectory()) return;
  await assertNoLink(target);
  if (!(await removeEmpty(target))) throw prefixConflict();
}

function prefixConflict(cause?: unknown): ObjectStoreError {
  return new ObjectStoreError(
    'invalid_key',
    'this key is a path prefix of another object’s key, or the reverse',
    {
      cause,
    },
  );
}

function refuseConflict(error: unknown): never {
  if (['ENOTDIR', 'EISDIR'].includes(errorCode(error) ?? '')) {
    throw prefixConflict(error);
  }
  throw error;
}
