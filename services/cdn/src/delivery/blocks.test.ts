import { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from '@jest/globals';
import { type ObjectBody, type ObjectStore, ObjectStoreError } from '@millrace/objects';
import { createMetrics } from '@millrace/platform';
import { waitFor } from '@millrace/testing';
import { type Block, type Blocks, createBlocks } from './blocks.ts';

/** One `get` that the test answers, breaks or leaves open. */
interface Get {
  key: string;
  range: { start: number; end?: number } | undefined;
  signal: AbortSignal | undefined;
  stream: Readable;
  resolve(body?: Partial<ObjectBody>): void;
  reject(error: unknown): void;
}

function fakeStore() {
  const gets: Get[] = [];
  const get: ObjectStore['get'] = (key, { range, signal } = {}) =>
    new Promise((resolve, reject) => {
      const stream = new Readable({ read: () => undefined });
      stream.on('error', () => undefined);
      const size = (range?.end ?? 0) - (range?.start ?? 0) + 1;
      signal?.addEventListener('abort', () => {
        stream.destroy(signal.reason as Error);
        reject(signal.reason as Error);
      });
      gets.push({
        ...{ key, range, signal, stream, reject },
        resolve: (body = {}) => resolve({ stream, sizeBytes: size, totalBytes: 1e6, etag: '"e"', ...body }),
      });
    });
  return { gets, objects: { get } as ObjectStore };
}

const block: Block = { key: 'a/b', offset: 100, bytes: 4 };
const alive = () => new AbortController().signal;

let blocks: Blocks;
afterEach(() => blocks.close());
function setUp(more: Partial<Parameters<typeof createBlocks>[0]> = {}) {
  const { gets, objects } = fakeStore();
  const metrics = createMetrics({ service: 'cdn' });
  blocks = createBlocks({
    objects,
    metrics,
    cacheBytes: 10_000,
    fetchBytes: 1_000,
    timeoutMs: 30_000,
    ...more,
  });
  return { gets, first: () => waitFor(() => gets[0]) };
}

const answer = (get: Get, text: string): void => {
  get.resolve();
  get.stream.push(Buffer.from(text));
  get.stream.push(null);
};

describe('blocks', () => {
  it('of no bytes are there without being asked for', () => {
    const { gets } = setUp();
    expect(blocks.cached({ ...block, bytes: 0 })).toHaveLength(0);
    expect(blocks.cached(block)).toBeUndefined();
    expect(gets).toHaveLength(0);
  });

  it('are fetched once for all who wait, by their range, and kept', async () => {
    const { gets, first } = setUp();
    const all = [1, 2, 3].map(() => blocks.fetch(block, alive()));
    answer(await first(), 'abcd');
    for (const bytes of await Promise.all(all)) expect(bytes.toString()).toBe('abcd');
    expect(gets).toHaveLength(1);
    expect(gets[0]).toMatchObject({ key: 'a/b', range: { start: 100, end: 103 } });
    expect(blocks.cached(block)?.toString()).toBe('abcd');
    expect(blocks.cached({ ...block, offset: 101 })).toBeUndefined();
  });

  it('survive the one who asked first', async () => {
    const { first } = setUp();
    const leader = new AbortController();
    const left = expect(blocks.fetch(block, leader.signal)).rejects.toThrow('gone');
    const stays = blocks.fetch(block, alive());
    const get = await first();
    leader.abort(new Error('gone'));
    await left;
    expect(get.signal?.aborted).toBe(false);
    answer(get, 'abcd');
    expect((await stays).toString()).toBe('abcd');
  });

  it('are given up when nobody waits, and asked for anew by the next', async () => {
    const { gets, first } = setUp();
    const leaving = [new AbortController(), new AbortController()];
    const left = leaving.map((each) => expect(blocks.fetch(block, each.signal)).rejects.toThrow('gone'));
    const get = await first();
    get.resolve();
    for (const each of leaving) each.abort(new Error('gone'));
    await Promise.all(left);
    expect(get.signal?.aborted).toBe(true);
    await waitFor(() => get.stream.destroyed);
    const next = blocks.fetch(block, alive());
    answer(await waitFor(() => gets[1]), 'wxyz');
    expect((await next).toString()).toBe('wxyz');
  });

  it('do not begin for one who has gone', async () => {
    const { gets } = setUp();
    await expect(blocks.fetch(block, AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
    expect(gets).toHaveLength(0);
  });

  it('are tried twice when the store breaks off, and fail then', async () => {
    const { gets } = setUp();
    const once = blocks.fetch(block, alive());
    const broken = await waitFor(() => gets[0]);
    broken.resolve();
    broken.stream.push(Buffer.from('ab'));
    broken.stream.destroy(new Error('ECONNRESET'));
    answer(await waitFor(() => gets[1]), 'abcd');
    expect((await once).toString()).toBe('abcd');
    const never = expect(blocks.fetch({ ...block, offset: 0 }, alive())).rejects.toMatchObject({
      code: 'unavailable',
    });
    (await waitFor(() => gets[2])).reject(new ObjectStoreError('unavailable', 'away'));
    (await waitFor(() => gets[3])).reject(new ObjectStoreError('unavailable', 'away'));
    await never;
    expect(gets).toHaveLength(4);
  });

  it('are told of piece by piece, to those who come later with what there is', async () => {
    const { first } = setUp();
    const seen: string[] = [];
    const told = (who: string) => (body: Buffer, filled: number) =>
      void seen.push(`${who} ${body.toString('latin1', 0, filled)}`);
    const early = blocks.fetch(block, alive(), told('early'));
    const get = await first();
    get.resolve();
    get.stream.push(Buffer.from('ab'));
    await waitFor(() => seen.length === 1);
    const late = blocks.fetch(block, alive(), told('late'));
    get.stream.push(Buffer.from('c'));
    await waitFor(() => seen.length === 4);
    get.stream.push(Buffer.from('d'));
    get.stream.push(null);
    await Promise.all([early, late]);
    expect(seen).toEqual(['early ab', 'late ab', 'early abc', 'late abc', 'early abcd', 'late abcd']);
  });

  it('go on where the store broke off', async () => {
    const { gets } = setUp();
    const seen: number[] = [];
    const once = blocks.fetch(block, alive(), (_body, filled) => void seen.push(filled));
    const broken = await waitFor(() => gets[0]);
    broken.resolve();
    broken.stream.push(Buffer.from('ab'));
    await waitFor(() => seen.length === 1);
    broken.stream.destroy(new Error('ECONNRESET'));
    const rest = await waitFor(() => gets[1]);
    expect(rest.range).toEqual({ start: 102, end: 103 });
    answer(rest, 'cd');
    expect((await once).toString()).toBe('abcd');
    expect(seen).toEqual([2, 4]);
  });

  it('reach the others when one of them fails at taking them', async () => {
    const { first } = setUp();
    const fails = expect(
      blocks.fetch(block, alive(), () => {
        throw new Error('cannot take it');
      }),
    ).rejects.toThrow('cannot take it');
    const stays = blocks.fetch(block, alive());
    answer(await first(), 'abcd');
    await fails;
    expect((await stays).toString()).toBe('abcd');
  });

  it('that are there in full are kept, though nobody waits for the end of the stream', async () => {
    const { first } = setUp();
    const leaving = new AbortController();
    const left = expect(
      blocks.fetch(block, leaving.signal, (_body, filled) => {
        if (filled === block.bytes) leaving.abort(new Error('has it all'));
      }),
    ).rejects.toThrow('has it all');
    const get = await first();
    get.resolve();
    get.stream.push(Buffer.from('abcd'));
    await left;
    expect(get.signal?.aborted).toBe(false);
    get.stream.push(null);
    await waitFor(() => blocks.cached(block));
  });

  it('that are missing are not tried again, and nothing of a failure is kept', async () => {
    const { gets, first } = setUp();
    const missing = expect(blocks.fetch(block, alive())).rejects.toMatchObject({ code: 'no_such_key' });
    (await first()).reject(new ObjectStoreError('no_such_key', 'gone'));
    await missing;
    expect(gets).toHaveLength(1);
    expect(blocks.cached(block)).toBeUndefined();
  });

  it.each([
    ['shorter than said', 'abc'],
    ['longer than said', 'abcdef'],
  ])('of the wrong length, %s, are not served', async (_title, text) => {
    const { gets } = setUp();
    const fails = expect(blocks.fetch(block, alive())).rejects.toMatchObject({ code: 'unavailable' });
    answer(await waitFor(() => gets[0]), text);
    answer(await waitFor(() => gets[1]), text);
    await fails;
    expect(gets.every(({ stream }) => stream.destroyed)).toBe(true);
  });

  it('that take too long are given up as unavailable', async () => {
    const { first } = setUp({ timeoutMs: 20 });
    const fails = expect(blocks.fetch(block, alive())).rejects.toMatchObject({ code: 'unavailable' });
    await first();
    await fails;
  });

  it('wait for memory in their order; one larger than all of it passes alone', async () => {
    const { gets } = setUp({ fetchBytes: 10 });
    const of = (offset: number, bytes: number) => blocks.fetch({ key: 'a', offset, bytes }, alive());
    const started = () => gets.map(({ range }) => range?.start);
    const fetched = [of(1, 6), of(2, 6), of(3, 20), of(4, 1)];
    await waitFor(() => gets.length > 0);
    expect(started()).toEqual([1]);
    for (const [n, bytes] of [6, 6, 20].entries()) {
      const get = await waitFor(() => gets[n]);
      expect(started()).toEqual([1, 2, 3].slice(0, n + 1));
      answer(get, 'x'.repeat(bytes));
      await fetched[n];
    }
    answer(await waitFor(() => gets[3]), 'x');
    await Promise.all(fetched);
    expect(started()).toEqual([1, 2, 3, 4]);
  });

  it('let those behind one who gives up waiting pass', async () => {
    const { gets } = setUp({ fetchBytes: 10 });
    const leaving = new AbortController();
    const first = blocks.fetch({ key: 'a', offset: 1, bytes: 6 }, alive());
    const left = expect(blocks.fetch({ key: 'a', offset: 2, bytes: 6 }, leaving.signal)).rejects.toThrow(
      'gone',
    );
    const third = blocks.fetch({ key: 'a', offset: 3, bytes: 4 }, alive());
    leaving.abort(new Error('gone'));
    await left;
    answer(await waitFor(() => gets[1]), 'cccc');
    expect((await third).toString()).toBe('cccc');
    answer(await waitFor(() => gets[0]), 'aaaaaa');
    await first;
    expect(gets.map(({ range }) => range?.start)).toEqual([1, 3]);
  });
});
