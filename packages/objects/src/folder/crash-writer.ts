import { createHash } from 'node:crypto';
import { writeSync } from 'node:fs';
import { silentLogger, systemClock } from '@millrace/platform';
import { put } from '../conformance/harness.ts';
import { createFolderObjectStore } from './folder-object-store.ts';
import { createFolderStoreServer } from './folder-store-server.ts';
import { testKey } from './test-store.ts';

/**
 * The victim of the crash test: works on a folder store as fast as it can until it is killed, and tells on its
 * standard output what it is about to do and what was acknowledged: `begin put KEY`, `done put KEY`, …
 */

/** What an object or part holds, by its name: so that whoever reads it later knows whether it is whole. */
export function contentOf(name: string): Buffer {
  const seed = createHash('sha256').update(name).digest();
  // Several chunks of a stream, and lengths that fit no block size.
  return Buffer.concat(Array.from({ length: 200 + (seed[0] ?? 0) * 30 }, () => seed)).subarray(seed[1] ?? 0);
}

export const partsPerUpload = 3;

const tell = (line: string): number => writeSync(1, `${line}\n`);

async function main(root: string, round: string): Promise<void> {
  const store = await createFolderObjectStore({
    root,
    publicUrl: () => `http://127.0.0.1:${server.port}`,
    keys: testKey(),
    clock: systemClock,
    logger: silentLogger,
    minPartBytes: 1,
  });
  const server = createFolderStoreServer({ store, logger: silentLogger });
  await server.start(AbortSignal.timeout(10_000));
  const step = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    tell(`begin ${what}`);
    const result = await work();
    tell(`done ${what}`);
    return result;
  };
  const putObjects = async (): Promise<void> => {
    for (let index = 0; ; index += 1) {
      const key = `put/${round}/${index % 5}/${index}`;
      await step(`put ${key}`, () => store.put(key, contentOf(key)));
      if (index % 3 === 0) await step(`delete ${key}`, () => store.deleteMany([key]));
    }
  };
  const uploadObjects = async (): Promise<void> => {
    for (let index = 0; ; index += 1) {
      const key = `upload/${round}/${index}`;
      const uploadId = await store.createUpload(key);
      tell(`done create ${key} ${uploadId}`);
      const parts: { partNumber: number; etag: string }[] = [];
      for (let partNumber = 1; partNumber <= partsPerUpload; partNumber += 1) {
        const expiresAt = new Date(Date.now() + 60_000);
        const url = await store.presignPart({ key, uploadId, partNumber, expiresAt });
        const response = await put(url, contentOf(`${key}#${partNumber}`));
        if (response.status !== 200) throw new Error(`a part was refused: ${await response.text()}`);
        parts.push({ partNumber, etag: response.headers.get('etag') ?? '' });
        tell(`done part ${key} ${partNumber}`);
      }
      if (index % 4 === 3) await step(`abort ${key}`, () => store.abort({ key, uploadId }));
      else await step(`complete ${key}`, () => store.complete({ key, uploadId, parts }));
      if (index % 4 === 2) await step(`delete ${key}`, () => store.deleteMany([key]));
    }
  };
  tell('ready');
  await Promise.all([putObjects(), uploadObjects()]);
}

const [, script, root, round] = process.argv;
if (script?.endsWith('crash-writer.ts') && root !== undefined && round !== undefined) await main(root, round);
