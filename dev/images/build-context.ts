import { cp, mkdir, readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

interface Rule {
  pattern: RegExp;
  includes: boolean;
}

/** Rules of a `.dockerignore` file. */
export const parseIgnore = (text: string): Rule[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ pattern: globOf(line.replace(/^!/, '')), includes: line.startsWith('!') }));

/** Docker's patterns; unlike those of shells, `*` takes a dot at the beginning too. */
function globOf(pattern: string): RegExp {
  const literal = pattern.replaceAll(/[.+^${}()|[\]\\]/g, '\\$&');
  const any = literal.replaceAll(/\*\*\/|\*\*|\*|\?/g, (glob) => globs[glob] ?? glob);
  return new RegExp(`^${any}$`);
}
const globs: Readonly<Record<string, string>> = { '**/': '(?:.*/)?', '**': '.*', '*': '[^/]*', '?': '[^/]' };

/** Whether a file belongs to the build context: the last rule that names it or a folder above it decides. */
export function belongs(path: string, rules: readonly Rule[]): boolean {
  const parts = path.split('/');
  const paths = parts.map((_, index) => parts.slice(0, index + 1).join('/'));
  const deciding = rules.findLast(({ pattern }) => paths.some((each) => pattern.test(each)));
  return deciding?.includes ?? true;
}

/** Copies what `docker build` would send of a folder. */
export async function copyContext(root: string, target: string): Promise<void> {
  const rules = parseIgnore(await readFile(join(root, '.dockerignore'), 'utf8'));
  const visit = async (folder: string): Promise<void> => {
    for (const entry of await readdir(join(root, folder), { withFileTypes: true })) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      // No rule of ours lets in what lies in these.
      if (entry.isDirectory()) {
        if (!/^(\.|node_modules$)/.test(entry.name)) await visit(path);
      } else if (entry.isFile() && belongs(path, rules)) {
        await mkdir(dirname(join(target, path)), { recursive: true });
        await cp(join(root, path), join(target, path));
      }
    }
  };
  await visit('');
}
