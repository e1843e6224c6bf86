import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, brotliDecompress, constants } from 'node:zlib';

/** A file of the player as it is served: named by its content, so that it never changes under its name. */
export interface PlayerFile {
  /** `player-3f9a….js`. */
  name: string;
  contentType: string;
  identity: Buffer;
  brotli: Buffer;
}

export interface PlayerFiles {
  script: PlayerFile;
  style: PlayerFile;
  logo: PlayerFile;
}

const kinds = {
  script: { file: 'player.js', contentType: 'text/javascript; charset=utf-8' },
  style: { file: 'player.css', contentType: 'text/css; charset=utf-8' },
  logo: { file: 'logo.svg', contentType: 'image/svg+xml' },
} as const;
type Kind = keyof typeof kinds;

const source = fileURLToPath(new URL('.', import.meta.url));
const browser = join(source, 'browser');
const compress = promisify(brotliCompress);
const decompress = promisify(brotliDecompress);

/**
 * The player's files, bundled and compressed from their source the first time (about 3 s of CPU), then read from
 * the cache. A cache that cannot be written, or holds damaged files, costs time alone.
 * @param cacheFolder may be removed at any time; the files lie in a folder named by the hash of all that goes in
 */
export async function loadPlayer(cacheFolder: string): Promise<PlayerFiles> {
  const folder = join(cacheFolder, `player-${await hashOfSources()}`);
  const cached = await readCache(folder).catch(() => null);
  if (cached !== null) return cached;
  const built = await build();
  await writeCache(folder, built).catch(() => undefined);
  return built;
}

async function build(): Promise<PlayerFiles> {
  // Loaded only when there is something to build: a start from the cache does without it.
  const esbuild = await import('esbuild');
  try {
    const { outputFiles } = await esbuild.build({
      entryPoints: [
        { in: join(browser, 'main.ts'), out: 'player' },
        { in: join(browser, 'player.css'), out: 'player' },
      ],
      outdir: 'out',
      ...{ bundle: true, minify: true, write: false, format: 'iife', target: 'es2022' },
      legalComments: 'none',
      logLevel: 'silent',
    });
    const output = (suffix: string): Buffer => {
      const found = outputFiles.find(({ path }) => path.endsWith(suffix));
      if (found === undefined) throw new Error(`the player's build has no ${suffix}`);
      return Buffer.from(found.contents);
    };
    const [script, style, logo] = await Promise.all([
      compressed('script', output('player.js')),
      compressed('style', output('player.css')),
      compressed('logo', await readFile(join(browser, 'logo.svg'))),
    ]);
    return { script, style, logo };
  } finally {
    await esbuild.stop();
  }
}

async function compressed(kind: Kind, identity: Buffer): Promise<PlayerFile> {
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
    [constants.BROTLI_PARAM_SIZE_HINT]: identity.length,
  };
  return fileOf(kind, identity, await compress(identity, { params }));
}

function fileOf(kind: Kind, identity: Buffer, brotli: Buffer): PlayerFile {
  const { file, contentType } = kinds[kind];
  const hash = createHash('sha256').update(identity).digest('hex').slice(0, 16);
  return { name: file.replace('.', `-${hash}.`), contentType, identity, brotli };
}

/** Reads what `writeCache` wrote. A file whose content is not what its name says is an error. */
async function readCache(folder: string): Promise<PlayerFiles> {
  const names = await readdir(folder);
  const read = async (kind: Kind): Promise<PlayerFile> => {
    const [stem, ending] = kinds[kind].file.split('.');
    const name = names.find(
      (each) => each.startsWith(`${stem ?? ''}-`) && each.endsWith(`.${ending ?? ''}.br`),
    );
    if (name === undefined) throw new Error(`${folder} has no ${kind}`);
    const brotli = await readFile(join(folder, name));
    const file = fileOf(kind, await decompress(brotli), brotli);
    if (`${file.name}.br` !== name) throw new Error(`${name} is damaged`);
    return file;
  };
  const [script, style, logo] = await Promise.all([read('script'), read('style'), read('logo')]);
  return { script, style, logo };
}

async function writeCache(folder: string, files: PlayerFiles): Promise<void> {
  const part = `${folder}.${randomUUID()}`;
  try {
    await mkdir(part, { recursive: true });
    for (const { name, brotli } of Object.values(files) as PlayerFile[]) {
      await writeFile(join(part, `${name}.br`), brotli);
    }
    // Whatever lies there was not readable, or another process was quicker with the same files.
    await rm(folder, { recursive: true, force: true });
    await rename(part, folder);
  } finally {
    await rm(part, { recursive: true, force: true });
  }
}

/** Hash of the sources and of the versions of what they are built with. */
async function hashOfSources(): Promise<string> {
  const require = createRequire(import.meta.url);
  const inBrowser = (await readdir(browser)).filter((name) => !name.endsWith('.test.ts')).sort();
  const sources = ['build.ts', 'texts.ts', ...inBrowser.map((name) => join('browser', name))];
  const paths = [
    ...sources.map((name) => join(source, name)),
    ...['hls.js/package.json', 'esbuild/package.json'].map((name) => require.resolve(name)),
  ];
  const hash = createHash('sha256');
  for (const path of paths) {
    const content = await readFile(path);
    hash.update(`${content.length}:`).update(content);
  }
  return hash.digest('hex').slice(0, 32);
}
