import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, symlink } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync } from 'node:zlib';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const archive = join(root, 'e2e/previous-release/sources.tar.br');

/**
 * Puts the sources of the release before ours into a folder, ready to run: its own packages, and of other people's those
 * that are installed here.
 */
export async function unpackPreviousRelease(folder: string): Promise<void> {
  const tar = brotliDecompressSync(await readFile(archive));
  execFileSync('tar', ['-x', '-C', folder], { input: tar, stdio: ['pipe', 'ignore', 'inherit'] });
  await linkAll(join(root, 'node_modules'), join(folder, 'node_modules'));
  const own = join(folder, 'node_modules/@millrace');
  await mkdir(own);
  for (const path of await workspaces(folder)) {
    const manifest = JSON.parse(await readFile(join(folder, path, 'package.json'), 'utf8')) as {
      name: string;
    };
    await symlink(relative(own, join(folder, path)), join(own, manifest.name.replace('@millrace/', '')));
    const nested = join(root, path, 'node_modules');
    if (existsSync(nested)) await linkAll(nested, join(folder, path, 'node_modules'));
  }
}

async function linkAll(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  for (const name of await readdir(from))
    if (name !== '@millrace' && !name.startsWith('.')) await symlink(join(from, name), join(to, name));
}

async function workspaces(folder: string): Promise<string[]> {
  const groups = ['packages', 'services'];
  const inGroups = groups.map(async (group) =>
    (await readdir(join(folder, group))).map((name) => join(group, name)),
  );
  return ['embedded', ...(await Promise.all(inGroups)).flat()];
}
