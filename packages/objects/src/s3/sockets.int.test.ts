import { once } from 'node:events';
import { type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { waitFor } from '@millrace/testing';
import { type ObjectStore } from '../object-store.ts';
import { type S3Limits } from './connection.ts';
import { createS3ObjectStore } from './s3-object-store.ts';
import { type Answer, bytes, type ScriptedS3, startScriptedS3 } from './testing/scripted-s3.ts';

let s3: ScriptedS3;
const stores: ObjectStore[] = [];
const open = (limits: Partial<S3Limits> = {}): ObjectStore => {
  const store = createS3ObjectStore({ ...s3.options, limits: { tries: 1, ...limits } });
  stores.push(store);
  return store;
};

beforeEach(async () => {
  s3 = await startScriptedS3();
});
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  await s3.close();
});

const size = 1_000_000;
const unavailable = { name: 'ObjectStoreError', code: 'unavailable' };
/** The head of an object and half of its bytes; then whatever `after` does. */
const half =
  (after: (response: ServerResponse) => void = () => undefined): Answer =>
  (response) => {
    response.writeHead(200, { etag: '"e"', 'content-length': size });
    response.write(Buffer.alloc(size / 2), () => after(response));
  };
const silence: Answer = () => undefined;
const noneOpen = (): Promise<unknown> => waitFor(async () => (await s3.connections()) === 0);

describe('connections', () => {
  it('are used again by bodies that were read to their end', async () => {
    s3.answers = [bytes(Buffer.alloc(100_000))];
    const store = open();
    for (let turn = 0; turn < 20; turn += 1) {
      const { stream } = await store.get('k');
      expect(await readBytes(stream)).toBe(100_000);
    }
    expect(await s3.connections()).toBe(1);
  });

  it.each<[string, (store: ObjectStore, abort: AbortController) => Promise<void>]>([
    [
      'aborted before the answer',
      async (store, abort) => {
        s3.answers = [silence];
        const getting = store.get('k', { signal: abort.signal });
        await waitFor(() => s3.calls.length === 20);
        abort.abort(new Error('no longer wanted'));
        await expect(getting).rejects.toBe(abort.signal.reason);
      },
    ],
    [
      'aborted in the middle of the body',
      async (store, abort) => {
        s3.answers = [half()];
        const { stream } = await store.get('k', { signal: abort.signal });
        await once(stream, 'readable');
        abort.abort();
        await expect(stream.toArray()).rejects.toMatchObject({ name: 'AbortError' });
      },
    ],
    [
      'left by their reader',
      async (store) => {
        s3.answers = [half()];
        const { stream } = await store.get('k');
        stream.destroy();
      },
    ],
    [
      'refused for their range',
      async (store) => {
        s3.answers = [half()];
        await expect(store.get('k', { range: { start: 1, end: 2 } })).rejects.toMatchObject(unavailable);
      },
    ],
  ])('of bodies that are %s are closed', async (_what, use) => {
    const store = open();
    await Promise.all(Array.from({ length: 20 }, () => use(store, new AbortController())));
    await noneOpen();
  });

  it('are limited, and one more get fails instead of waiting for ever', async () => {
    s3.answers = [half()];
    const store = open({ connections: 2, connectMs: 1_000 });
    const bodies = await Promise.all([store.get('k'), store.get('k')]);
    await expect(store.get('k')).rejects.toMatchObject(unavailable);
    for (const { stream } of bodies) stream.destroy();
    s3.answers = [bytes(Buffer.alloc(1))];
    expect(await readBytes((await store.get('k')).stream)).toBe(1);
  });

  it('are closed with the store', async () => {
    s3.answers = [bytes(Buffer.alloc(1))];
    const store = open();
    await readBytes((await store.get('k')).stream);
    await store.close();
    await noneOpen();
  });
});

describe('a body', () => {
  it.each([
    ['is reset', (response: ServerResponse) => void response.socket?.resetAndDestroy()],
    ['ends early', (response: ServerResponse) => void response.socket?.end()],
  ])('that %s in the middle fails, and is never shorter unnoticed', async (_what, breakOff) => {
    s3.answers = [half(breakOff)];
    const { stream, sizeBytes } = await open().get('k');
    expect(sizeBytes).toBe(size);
    await expect(readBytes(stream)).rejects.toMatchObject(unavailable);
  });

  it('that stalls fails after the idle time, and so does one that nobody reads', async () => {
    s3.answers = [half()];
    const store = open({ idleMs: 50 });
    const { stream } = await store.get('k');
    await expect(readBytes(stream)).rejects.toMatchObject(unavailable);
    const unread = await store.get('k');
    await expect(once(unread.stream, 'end')).rejects.toMatchObject(unavailable);
    await noneOpen();
  });

  it('is not hurried while bytes come', async () => {
    s3.answers = [
      async (response) => {
        response.writeHead(200, { etag: '"e"', 'content-length': 5 });
        for (let turn = 0; turn < 5; turn += 1) {
          response.write('x');
          await new Promise((resolve) => setTimeout(resolve, 300));
        }
        response.end();
      },
    ];
    expect(await readBytes((await open({ idleMs: 1_000 }).get('k')).stream)).toBe(5);
  });
});

describe('a server', () => {
  it('that does not answer is unavailable after a while, as often as it is tried', async () => {
    s3.answers = [silence];
    const store = open({ answerMs: 700, tries: 2 });
    await expect(store.head('k')).rejects.toMatchObject(unavailable);
    expect(s3.calls).toHaveLength(2);
    await noneOpen();
  });

  it('may take longer to join parts, but not for ever', async () => {
    const upload = { key: 'k', uploadId: 'u', parts: [{ partNumber: 1, etag: '"a"' }] };
    s3.answers = [silence];
    await expect(open({ answerMs: 20, joinMs: 1_500, tries: 3 }).complete(upload)).rejects.toMatchObject(
      unavailable,
    );
    expect(s3.calls).toHaveLength(1);
    await noneOpen();
  });

  it('may take its time on a connection whose last body had an idle time', async () => {
    s3.answers = [
      bytes(Buffer.alloc(1)),
      async (response) => {
        await new Promise((resolve) => setTimeout(resolve, 900));
        response.writeHead(200, { etag: '"e"', 'content-length': 1 }).end();
      },
    ];
    const store = open({ idleMs: 300 });
    await readBytes((await store.get('k')).stream);
    expect(await store.head('k')).toMatchObject({ sizeBytes: 1 });
    expect(await s3.connections()).toBe(1);
  });

  it('that is not there is unavailable', async () => {
    const store = open();
    await s3.close();
    await expect(store.head('k')).rejects.toMatchObject(unavailable);
    await expect(store.put('k', Buffer.from('x'))).rejects.toMatchObject(unavailable);
    await expect(store.check()).rejects.toMatchObject(unavailable);
    s3 = await startScriptedS3();
  });
});

describe('a put that is aborted', () => {
  it('ends its request, and its source', async () => {
    s3.answers = [silence];
    const abort = new AbortController();
    const source = new Readable({ read: () => undefined });
    source.push('all of it');
    source.push(null);
    const putting = open().put('k', source, { signal: abort.signal });
    await waitFor(() => s3.calls.length === 1);
    abort.abort(new Error('no longer wanted'));
    await expect(putting).rejects.toBe(abort.signal.reason);
    expect(source.destroyed).toBe(true);
    await noneOpen();
  });
});

async function readBytes(stream: Readable): Promise<number> {
  let total = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) total += chunk.length;
  return total;
}
