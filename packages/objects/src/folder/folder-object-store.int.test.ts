import { randomBytes } from 'node:crypto';
import {
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { captureLogger } from '@millrace/testing';
import fc from 'fast-check';
import { allPages, putPart, readAll } from '../conformance/harness.ts';
import { createTestStore, type TestStore } from './test-store.ts';

let test: TestStore;
const log = captureLogger();
beforeEach(async () => {
  test = await createTestStore({ minPartBytes: 1, logger: log.logger });
});
afterEach(() => test.close());

const inRoot = (...names: string[]): string => path.join(test.root, ...names);

/** A completed upload of two parts. */
async function completed(
  key: string,
  bodies = ['first ', 'second'],
): Promise<{ key: string; uploadId: string }> {
  const upload = { key, uploadId: await test.store.createUpload(key) };
  const parts = [];
  for (const [index, body] of bodies.entries()) {
    parts.push(await putPart(test.store, upload, index + 1, Buffer.from(body)));
  }
  await test.store.complete({ ...upload, parts });
  return upload;
}

const textOf = async (key: string): Promise<string> => (await readAll(test.store, key)).toString();

describe('completing', () => {
  it('copies nothing: the object is made of the very files that were received', async () => {
    const upload = { key: 'a/source', uploadId: await test.store.createUpload('a/source') };
    const part = await putPart(test.store, upload, 1, randomBytes(1_000));
    const received = await stat(inRoot('uploads', upload.uploadId, '00001'));
    await test.store.complete({ ...upload, parts: [part] });
    expect((await stat(inRoot('parts', upload.uploadId, '00001'))).ino).toBe(received.ino);
    await test.store.deleteMany(['a/source']);
    expect([
      await readdir(inRoot('parts')),
      await readdir(inRoot('trash')),
      await readdir(inRoot('objects')),
    ]).toEqual([[], [], []]);
  });

  it('removes the parts of an object that it replaces', async () => {
    await completed('a/source', ['old']);
    const upload = await completed('a/source', ['new']);
    expect(await textOf('a/source')).toBe('new');
    expect(await readdir(inRoot('parts'))).toEqual([upload.uploadId]);
    await test.store.put('a/source', Buffer.from('plain'));
    expect(await readdir(inRoot('parts'))).toEqual([]);
    expect(await readdir(inRoot('trash'))).toEqual([]);
  });
});

describe('a part that complete did not name', () => {
  it('leaves the disk', async () => {
    const upload = { key: 'a/source', uploadId: await test.store.createUpload('a/source') };
    const part = await putPart(test.store, upload, 1, Buffer.from('one'));
    await putPart(test.store, upload, 2, Buffer.from('two'));
    await test.store.complete({ ...upload, parts: [part] });
    expect((await readdir(inRoot('parts', upload.uploadId))).sort()).toEqual(['00001', 'upload.json']);
  });
});

describe('a start', () => {
  it('sweeps half-written files of dead processes only', async () => {
    const dead = inRoot('temp', '999999999-dead');
    const alive = inRoot('temp', '1-alive');
    for (const folder of [dead, alive]) {
      await mkdir(folder);
      await writeFile(path.join(folder, 'half'), 'x');
    }
    await test.reopen();
    const left = await readdir(inRoot('temp'));
    expect(left).toContain('1-alive');
    expect(left).not.toContain('999999999-dead');
    expect(left.filter((name) => name.startsWith(`${process.pid}-`))).toHaveLength(1);
  });

  it('finishes a complete that was decided: before it too, the object is whole and its upload closed', async () => {
    const upload = await completed('a/source');
    // As after a kill between the object's appearance and the move of its parts.
    await rename(inRoot('parts', upload.uploadId), inRoot('uploads', upload.uploadId));
    expect(await textOf('a/source')).toBe('first second');
    await test.reopen();
    expect((await test.store.listUploads()).items).toEqual([]);
    expect(await textOf('a/source')).toBe('first second');
  });

  it.each(['a part', 'an abort', 'a list of parts'])(
    'is not needed for %s to leave such an object alone',
    async (what) => {
      const upload = await completed('a/source');
      await rename(inRoot('parts', upload.uploadId), inRoot('uploads', upload.uploadId));
      if (what === 'a part') {
        await expect(putPart(test.store, upload, 1, Buffer.from('other'))).rejects.toThrow('404');
      } else if (what === 'an abort') await test.store.abort(upload);
      else await expect(test.store.listParts(upload)).rejects.toMatchObject({ code: 'no_such_upload' });
      expect(await textOf('a/source')).toBe('first second');
      expect(await readdir(inRoot('uploads'))).toEqual([]);
    },
  );

  it('finishes a delete that was decided, and keeps an object that is still there', async () => {
    const gone = await completed('a/gone');
    const kept = await completed('a/kept');
    await rename(inRoot('objects/a/gone'), inRoot('trash', gone.uploadId));
    // As after a kill while another object was about to replace it.
    await writeFile(inRoot('trash', kept.uploadId), await readFile(inRoot('objects/a/kept')));
    await test.reopen();
    expect(await readdir(inRoot('trash'))).toEqual([]);
    expect(await readdir(inRoot('parts'))).toEqual([kept.uploadId]);
    expect(await textOf('a/kept')).toBe('first second');
  });

  it('keeps open uploads with their parts', async () => {
    const upload = { key: 'a/source', uploadId: await test.store.createUpload('a/source') };
    const part = await putPart(test.store, upload, 1, Buffer.from('one'));
    await test.reopen();
    expect((await test.store.listUploads()).items).toMatchObject([upload]);
    await test.store.complete({ ...upload, parts: [part] });
    expect(await textOf('a/source')).toBe('one');
  });
});

describe('keys that are path prefixes of each other', () => {
  const refused = { code: 'invalid_key' };

  it('are refused, whichever comes second', async () => {
    await test.store.put('d', Buffer.from('file'));
    await expect(test.store.put('d/e', Buffer.from('x'))).rejects.toMatchObject(refused);
    await expect(test.store.put('d/e/f', Buffer.from('x'))).rejects.toMatchObject(refused);
    await expect(test.store.createUpload('d/e')).rejects.toMatchObject(refused);
    await test.store.put('p/q/r', Buffer.from('file'));
    await expect(test.store.put('p/q', Buffer.from('x'))).rejects.toMatchObject(refused);
    await expect(test.store.createUpload('p')).rejects.toMatchObject(refused);
    expect([await textOf('d'), await textOf('p/q/r')]).toEqual(['file', 'file']);
    expect((await allPages((after) => test.store.list('', after))).map(({ key }) => key)).toEqual([
      'd',
      'p/q/r',
    ]);
  });

  it('are refused by complete too, and the upload stays open', async () => {
    const upload = { key: 'd', uploadId: await test.store.createUpload('d') };
    const part = await putPart(test.store, upload, 1, Buffer.from('body'));
    await test.store.put('d/e', Buffer.from('x'));
    await expect(test.store.complete({ ...upload, parts: [part] })).rejects.toMatchObject(refused);
    await test.store.deleteMany(['d/e']);
    await test.store.complete({ ...upload, parts: [part] });
    expect(await textOf('d')).toBe('body');
  });

  it('do not collide through empty folders that a killed delete left', async () => {
    await mkdir(inRoot('objects/d/e/f'), { recursive: true });
    await test.store.put('d', Buffer.from('file'));
    expect(await textOf('d')).toBe('file');
  });

  it('never break a put whose folder is pruned at the same moment', async () => {
    for (let round = 0; round < 30; round += 1) {
      await test.store.put('x/y/z/one', Buffer.from('1'));
      await Promise.all([
        test.store.deleteMany(['x/y/z/one']),
        test.store.put('x/y/z/two', Buffer.from('2')),
        test.store.put('x/y/other', Buffer.from('3')),
      ]);
      expect(await textOf('x/y/z/two')).toBe('2');
      await test.store.deleteMany(['x/y/z/two', 'x/y/other']);
    }
    expect(await readdir(inRoot('objects'))).toEqual([]);
  });
});

describe('symbolic links', () => {
  beforeEach(async () => {
    await mkdir(path.join(test.base, 'outside'));
    // Well-formed: it is refused for where it lies.
    await test.store.put('canary', Buffer.from('canary'));
    await rename(inRoot('objects/canary'), path.join(test.base, 'outside', 'canary'));
    await symlink(path.join(test.base, 'outside'), inRoot('objects/folder'));
    await symlink(path.join(test.base, 'outside', 'canary'), inRoot('objects/file'));
  });

  it('are never followed, neither to read nor to write', async () => {
    const refused = { name: 'ObjectStoreError', code: 'unavailable' };
    for (const key of ['folder/canary', 'file']) {
      await expect(test.store.get(key)).rejects.toMatchObject(refused);
      await expect(test.store.head(key)).rejects.toMatchObject(refused);
      await expect(test.store.deleteMany([key])).rejects.toMatchObject(refused);
    }
    await expect(test.store.put('folder/new', Buffer.from('x'))).rejects.toMatchObject(refused);
    await expect(test.store.put('folder/deep/new', Buffer.from('x'))).rejects.toMatchObject(refused);
    expect((await test.store.list('')).items).toEqual([]);
    expect(await readdir(path.join(test.base, 'outside'))).toEqual(['canary']);
    expect(await readFile(path.join(test.base, 'outside', 'canary'), 'utf8')).toMatch(/canary$/);
  });

  it('in place of the store’s own folders stop the start', async () => {
    await rename(inRoot('trash'), inRoot('moved'));
    await symlink(path.join(test.base, 'outside'), inRoot('trash'));
    await expect(test.reopen()).rejects.toThrow('is not a folder');
    await rename(inRoot('moved'), inRoot('elsewhere'));
  });
});

describe('hostile keys', () => {
  it('never reach anything outside the folder', async () => {
    await writeFile(path.join(test.base, 'canary'), 'canary');
    const before = await readdir(test.base);
    const piece = fc.oneof(
      fc.constantFrom(
        '..',
        '.',
        '',
        '/',
        '\\',
        '%2e%2e',
        '%2f',
        '\0',
        'canary',
        '../canary',
        'objects',
        '~',
        'C:',
      ),
      fc.string({ maxLength: 4, unit: 'binary' }),
    );
    const hostile = fc
      .array(piece, { minLength: 1, maxLength: 6 })
      .chain((pieces) => fc.constantFrom('/', '').map((joint) => pieces.join(joint)));
    await fc.assert(
      fc.asyncProperty(hostile, async (key) => {
        await Promise.allSettled([
          test.store.put(key, Buffer.from('hostile')),
          test.store.createUpload(key),
          test.store.deleteMany([key]),
        ]);
        const read = await test.store.get(key).catch(() => null);
        if (read) expect(Buffer.concat((await read.stream.toArray()) as Buffer[]).toString()).toBe('hostile');
        await test.store.list(key);
        await test.store.abort({ key, uploadId: key });
        await expect(test.store.listParts({ key, uploadId: key })).rejects.toMatchObject({
          code: 'no_such_upload',
        });
      }),
      { numRuns: 150 },
    );
    expect(await readdir(test.base)).toEqual(before);
    expect(await readFile(path.join(test.base, 'canary'), 'utf8')).toBe('canary');
  });
});

describe('listing', () => {
  it('is the sorted keys with the prefix, whatever they are', async () => {
    const name = fc.string({
      unit: fc.constantFrom('a', 'b', '-', '.', '0', '_', 'Z'),
      minLength: 1,
      maxLength: 3,
    });
    const key = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join('/'));
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(key, { maxLength: 12 }),
        fc.option(key, { nil: '' }),
        async (keys, prefix) => {
          const stored: string[] = [];
          // A key that is a path prefix of another, or not well-formed, is refused; the rest counts.
          for (const each of keys) {
            await test.store.put(each, Buffer.from('x')).then(
              () => stored.push(each),
              () => undefined,
            );
          }
          const page = async (after?: string): ReturnType<typeof test.store.list> =>
            test.store.list(prefix, after);
          const listed = (await allPages(page)).map((item) => item.key);
          const wanted = stored.filter((each) => each.startsWith(prefix)).sort();
          expect(listed).toEqual(wanted);
          const half = wanted[Math.floor(wanted.length / 2)];
          expect((await test.store.list(prefix, half)).items.map((item) => item.key)).toEqual(
            wanted.filter((each) => half === undefined || each > half),
          );
          await test.store.deleteMany(stored);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('faults of the disk', () => {
  it('too little space refuses what would need it, and check says so', async () => {
    await test.close();
    test = await createTestStore({ minFreeBytes: Number.MAX_SAFE_INTEGER });
    const refused = { code: 'unavailable', message: expect.stringMatching(/has \d+ bytes left/) as unknown };
    await expect(test.store.check()).rejects.toMatchObject(refused);
    await expect(test.store.put('a', Buffer.from('x'))).rejects.toMatchObject(refused);
    const upload = { key: 'a', uploadId: await test.store.createUpload('a') };
    await expect(putPart(test.store, upload, 1, Buffer.from('x'))).rejects.toThrow('503');
    const { freeBytes, totalBytes } = await test.store.diskSpace();
    expect(freeBytes).toBeGreaterThan(0);
    expect(totalBytes).toBeGreaterThanOrEqual(freeBytes);
  });

  it('a file cut short or damaged is an error, never a shorter body', async () => {
    const upload = await completed('a/source', ['0123456789', 'abcdefghij']);
    await truncate(inRoot('parts', upload.uploadId, '00001'), 256 + 4);
    const { stream } = await test.store.get('a/source');
    await expect(stream.toArray()).rejects.toMatchObject({ code: 'unavailable' });
    await writeFile(inRoot('objects/a/source'), 'not a header');
    await expect(test.store.head('a/source')).rejects.toMatchObject({ code: 'unavailable' });
    await test.store.deleteMany(['b']);
  });

  it('are logged with their cause and thrown as the port’s errors', async () => {
    await rename(inRoot('temp'), inRoot('temp-gone'));
    await expect(test.store.put('a', Buffer.from('x'))).rejects.toMatchObject({
      name: 'ObjectStoreError',
      code: 'unavailable',
      cause: { code: 'ENOENT' },
    });
    expect(log.lines.at(-1)).toMatchObject({ level: 'error', message: 'object folder failed' });
    await rename(inRoot('temp-gone'), inRoot('temp'));
  });
});

describe('open files', () => {
  it('are all closed: of bodies read, cut, never read, aborted and refused', async () => {
    await completed('a/multi', ['x'.repeat(600_000), 'y'.repeat(600_000)]);
    await test.store.put('a/single', randomBytes(600_000));
    const openFiles = async (): Promise<number> => {
      const links = await readdir('/proc/self/fd');
      const paths = await Promise.all(links.map((link) => readlink(`/proc/self/fd/${link}`).catch(() => '')));
      return paths.filter((target) => target.startsWith(test.root)).length;
    };
    for (const key of ['a/multi', 'a/single']) {
      await readAll(test.store, key);
      for (const reads of [0, 1]) {
        const { stream } = await test.store.get(key);
        const closed = new Promise((resolve) => stream.once('close', resolve));
        if (reads === 1) await new Promise((resolve) => stream.once('data', resolve));
        stream.destroy();
        await closed;
      }
      await expect(test.store.get(key, { range: { start: 9_999_999 } })).rejects.toThrow();
    }
    expect(await openFiles()).toBe(0);
  });
});
