import { describe, expect, it } from '@jest/globals';
import { prepare, tidyUp } from '../src/prepare.ts';
import { type Behaviour, createFakeWorld, type Seen } from './fake-service.ts';

const source = new ArrayBuffer(50);
const troubled = { WEBHOOK_SLOW_URL: 'https://slow.example', WEBHOOK_DEAD_URL: 'https://dead.example' };
const given = (environment: Record<string, string>, behaviour: Behaviour = {}) =>
  createFakeWorld(behaviour, { ...troubled, ...environment });
const deleted = (seen: readonly Seen[]): string[] =>
  seen.filter(({ method }) => method === 'DELETE').map(({ path }) => path.replace(/.*\//, ''));

describe('the set-up', () => {
  it('uploads what is missing, waits for it, and makes the endpoints; the end removes all of that', async () => {
    const { world, seen } = given({ VIDEO_IDS: 'vid_a' });
    const prepared = await prepare(world, { videos: 3, held: true }, source);
    expect(prepared.videos).toEqual(['vid_a', prepared.uploaded[0]]);
    expect(prepared.held).toBe(prepared.uploaded[1]);
    expect(prepared.endpoints?.troubled).toHaveLength(2);
    expect(deleted(seen)).toEqual([]);
    await tidyUp(world, prepared);
    const { healthy = '', troubled: others = [] } = prepared.endpoints ?? {};
    expect(deleted(seen).sort()).toEqual([...prepared.uploaded, healthy, ...others].sort());
  });

  it('leaves the videos that it was told to use alone', async () => {
    const { world, seen } = given({ VIDEO_IDS: 'vid_a,vid_b,vid_c' });
    const prepared = await prepare(world, { videos: 1, held: true }, null);
    expect(prepared).toMatchObject({ videos: ['vid_a', 'vid_b'], held: 'vid_c', uploaded: [] });
    await tidyUp(world, prepared);
    expect(deleted(seen).filter((id) => id.startsWith('vid_'))).toEqual([]);
  });

  it.each([
    ['a video fails', ({ path, method }: Seen) => method === 'GET' && /videos\/\w+$/.test(path), 1],
    // The third of three: two of them are there already, and so is the video.
    ['an endpoint is refused', ({ body }: Seen) => JSON.stringify(body ?? null).includes('dead.example'), 3],
  ])('leaves nothing behind when %s', async (_, isBroken, removed) => {
    const reply = { status: 403, body: { code: 'endpoint_limit_reached' } };
    const made = given({}, { instead: (seen) => (isBroken(seen) ? reply : undefined) });
    await expect(prepare(made.world, { videos: 1, held: false }, source)).rejects.toThrow('answered 403');
    expect(deleted(made.seen)).toHaveLength(removed);
  });
});

it('the end removes the rest when something cannot be removed, and says so', async () => {
  const { world, seen } = given(
    {},
    { instead: ({ path }) => (path.endsWith('vid_a') ? { status: 500 } : undefined) },
  );
  const prepared = { videos: [], held: null, endpoints: null, uploaded: ['vid_a', 'vid_b'] };
  await expect(tidyUp(world, prepared)).rejects.toThrow('delete video answered 500');
  expect(deleted(seen)).toEqual(['vid_a', 'vid_b']);
});
