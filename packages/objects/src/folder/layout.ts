import { lstat, mkdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import { type Clock } from '@millrace/platform';
import { assertKey } from '../keys.ts';
import { orNull, syncFolder } from './files.ts';
import { createKeyedLock, type KeyedLock } from './keyed-lock.ts';
import { openTempFolder, type TempFolder } from './temp-folder.ts';

/**
 * What the parts of the folder store share.
 *
 * - `objects/<key>`: one blob file per object. A completed upload's file is an index; its content stays where the
 *   parts were received, so that completing copies nothing.
 * - `uploads/<upload id>/`: an open upload: `upload.json` and a blob per part, `00001` …
 * - `parts/<upload id>/`: the same folder once the object is there.
 * - `trash/<upload id>`: the index of an object whose parts are being removed.
 * - `temp/<process>/`: what is being written or removed.
 *
 * One step decides each operation, a rename into or out of `objects`; a start finishes what follows from it.
 */
export interface FolderContext {
  readonly folders: Readonly<Record<(typeof names)[number], string>>;
  readonly temp: TempFolder;
  readonly clock: Clock;
  readonly pageSize: number;
  /** Of every part but the last; in bytes. */
  readonly minPartBytes: number;
  readonly lockKey: KeyedLock;
  readonly lockUpload: KeyedLock;
}

const names = ['objects', 'uploads', 'parts', 'trash', 'temp'] as const;

/** Makes the folders that are missing and sweeps the temporary files of processes that are gone. */
export async function openFolders(
  root: string,
  options: Pick<FolderContext, 'clock' | 'pageSize' | 'minPartBytes'>,
): Promise<FolderContext> {
  await mkdir(root, { recursive: true });
  const real = await realpath(root);
  for (const name of names) {
    const folder = path.join(real, name);
    await orNull(['EEXIST'], mkdir(folder));
    if (!(await lstat(folder)).isDirectory()) throw new Error(`${folder} is not a folder`);
  }
  await syncFolder(real);
  const folders = Object.fromEntries(names.map((name) => [name, path.join(real, name)]));
  return {
    ...options,
    folders: folders as FolderContext['folders'],
    temp: await openTempFolder(path.join(real, 'temp')),
    lockKey: createKeyedLock(),
    lockUpload: createKeyedLock(),
  };
}

/** The file of an object. @throws {ObjectStoreError} `invalid_key` */
export function objectPath({ folders }: FolderContext, key: string): string {
  assertKey(key);
  return path.join(folders.objects, key);
}

/** Upload ids rise with time, so that sorting names is sorting by age. */
export function isUploadId(text: string): boolean {
  return /^[0-9a-f]{32}$/.test(text);
}

/** A part's file name, sorted as its number. */
export function partName(partNumber: number): string {
  return String(partNumber).padStart(5, '0');
}
