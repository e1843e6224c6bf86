import { beforeEach, describe, expect, it } from '@jest/globals';
import { createEmbedder, type Embedder, type FreshToken } from './embedder.ts';

const origin = 'https://shop.example.com';
const videoId = 'vid_1';

type Listener = (message: MessageEvent) => void;

describe('the embedder', () => {
  const posted: [message: unknown, target: unknown][] = [];
  const parent = { postMessage: (message: unknown, target: unknown) => posted.push([message, target]) };
  const tokens: FreshToken[] = [];
  let listener: Listener;
  let embedder: Embedder;

  beforeEach(() => {
    posted.length = 0;
    tokens.length = 0;
    const frame = { parent, addEventListener: (_type: 'message', added: Listener) => (listener = added) };
    embedder = createEmbedder(frame, { origin, videoId }, (fresh) => tokens.push(fresh));
  });

  const hear = (data: unknown, more: { origin?: string; source?: unknown } = {}): void =>
    listener({ data, origin, source: parent, ...more } as MessageEvent);
  const good = { type: 'millrace:token', v: 1, token: 'a.b' };

  it('is spoken with at its own origin, never any', () => {
    embedder.askForToken('expiring');
    embedder.tell({ event: 'error', code: 'video_unavailable' });
    expect(posted).toEqual([
      [{ type: 'millrace:token-request', v: 1, videoId, reason: 'expiring' }, origin],
      [{ type: 'millrace:event', v: 1, videoId, event: 'error', code: 'video_unavailable' }, origin],
    ]);
  });

  it('hands over a token, with its expiry or without', () => {
    hear(good);
    hear({ ...good, videoId, token: 'c.d', expiresAt: '2030-01-01T00:00:00.000Z', more: 1 });
    hear({ ...good, token: 'e.f', expiresAt: 'soon' });
    expect(tokens).toEqual([
      { token: 'a.b', expiresAtMs: null },
      { token: 'c.d', expiresAtMs: Date.UTC(2030, 0, 1) },
      { token: 'e.f', expiresAtMs: null },
    ]);
  });

  it.each<[string, unknown, { origin?: string; source?: unknown }]>([
    ['another origin', good, { origin: 'https://evil.example.com' }],
    ['a longer origin', good, { origin: `${origin}.evil.example` }],
    ['its origin by http', good, { origin: 'http://shop.example.com' }],
    ['an opaque origin', good, { origin: 'null' }],
    ['another frame of its origin', good, { source: { postMessage: () => undefined } }],
    ['nobody', good, { source: null }],
    ['another version', { ...good, v: 2 }, {}],
    ['another type', { ...good, type: 'token' }, {}],
    ['another video', { ...good, videoId: 'vid_2' }, {}],
    ['no token', { ...good, token: 7 }, {}],
    ['a token with more in it', { ...good, token: 'a.b&lang=x' }, {}],
    ['text', JSON.stringify(good), {}],
    ['null', null, {}],
  ])('is not heard in a message of %s', (_title, data, more) => {
    hear(data, more);
    expect(tokens).toEqual([]);
  });

  it('is nobody when the page is not in a frame', () => {
    const frame = {
      addEventListener: (_type: 'message', added: Listener) => (listener = added),
      postMessage: parent.postMessage,
      get parent(): unknown {
        return frame;
      },
    };
    const alone = createEmbedder(frame, { origin, videoId }, (fresh) => tokens.push(fresh));
    alone.askForToken('expired');
    listener({ data: good, origin, source: frame } as unknown as MessageEvent);
    expect([posted, tokens]).toEqual([[], []]);
  });
});
