import { describe, expect, it } from '@jest/globals';
import { createByteGate } from './byte-gate.ts';

const never = new AbortController().signal;

/** What has passed, by name, in its order. */
function watch(maximumBytes: number) {
  const gate = createByteGate(maximumBytes);
  const passed: string[] = [];
  const releases = new Map<string, () => void>();
  const enter = async (name: string, bytes: number, signal = never): Promise<void> => {
    const release = await gate.enter(bytes, signal);
    passed.push(name);
    releases.set(name, release);
  };
  /** Until all that may pass has passed. */
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const leave = async (name: string): Promise<void> => {
    releases.get(name)?.();
    await settled();
  };
  return { enter, leave, passed, settled };
}

describe('the byte gate', () => {
  it('lets in up to its bound, and the rest in its order as there is room', async () => {
    const { enter, leave, passed, settled } = watch(10);
    for (const [name, bytes] of [
      ['a', 6],
      ['b', 4],
      ['c', 5],
      ['d', 1],
    ] as const)
      void enter(name, bytes);
    await settled();
    expect(passed).toEqual(['a', 'b']);
    await leave('b');
    expect(passed).toEqual(['a', 'b']);
    await leave('a');
    expect(passed).toEqual(['a', 'b', 'c', 'd']);
  });

  it('lets in alone what is larger than the bound', async () => {
    const { enter, leave, passed, settled } = watch(10);
    void enter('small', 1);
    void enter('large', 11);
    void enter('next', 1);
    await settled();
    expect(passed).toEqual(['small']);
    await leave('small');
    expect(passed).toEqual(['small', 'large']);
    await leave('large');
    expect(passed).toEqual(['small', 'large', 'next']);
  });

  it('refuses what was given up before, with the reason of it', async () => {
    const { enter, passed } = watch(10);
    const reason = new Error('gone');
    await expect(enter('a', 1, AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(passed).toEqual([]);
  });

  it('lets the next in when one gives up waiting, and takes no notice of one who is in', async () => {
    const { enter, leave, passed, settled } = watch(10);
    const [inside, waiting] = [new AbortController(), new AbortController()];
    void enter('a', 6, inside.signal);
    const given = enter('b', 5, waiting.signal);
    void enter('c', 4);
    void enter('d', 6);
    await settled();
    expect(passed).toEqual(['a']);
    inside.abort();
    waiting.abort(new Error('gone'));
    await expect(given).rejects.toThrow('gone');
    await settled();
    expect(passed).toEqual(['a', 'c']);
    await leave('a');
    expect(passed).toEqual(['a', 'c', 'd']);
  });

  it('forgets the signal of one who waited and is in', async () => {
    const { enter, leave, passed, settled } = watch(10);
    const late = new AbortController();
    void enter('a', 10);
    void enter('b', 10, late.signal);
    void enter('c', 10);
    await settled();
    await leave('a');
    late.abort();
    await settled();
    expect(passed).toEqual(['a', 'b']);
    await leave('b');
    expect(passed).toEqual(['a', 'b', 'c']);
  });
});
