import { type Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { orNull } from './files.ts';

/**
 * The keys under a folder that begin with `prefix` and come after `after`, by rising bytes as S3 sorts them.
 * Folders that can hold none are not read. Links and other strange entries are passed over.
 */
export async function* listKeys(root: string, prefix: string, after: string): AsyncGenerator<string> {
  yield* walk(root, '', prefix, after);
}

async function* walk(folder: string, base: string, prefix: string, after: string): AsyncGenerator<string> {
  // It may be pruned, or replaced by an object, while the walk is on its way.
  const entries = await orNull(['ENOENT', 'ENOTDIR'], readdir(folder, { withFileTypes: true }));
  // `a-b` < `a/b` < `a0`: a folder sorts with its slash.
  const named = (entries ?? []).map((entry) => ({
    entry,
    key: base + entry.name + (entry.isDirectory() ? '/' : ''),
  }));
  named.sort((a, b) => (a.key < b.key ? -1 : 1));
  for (const { entry, key } of named) {
    if (isWanted(entry, key, prefix, after)) {
      if (entry.isFile()) yield key;
      else yield* walk(path.join(folder, entry.name), key, prefix, after);
    }
  }
}

function isWanted(entry: Dirent, key: string, prefix: string, after: string): boolean {
  if (entry.isFile()) return key.startsWith(prefix) && key > after;
  if (!entry.isDirectory()) return false;
  return (key.startsWith(prefix) || prefix.startsWith(key)) && (key > after || after.startsWith(key));
}
