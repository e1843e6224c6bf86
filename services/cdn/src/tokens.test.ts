import { describe, expect, it } from '@jest/globals';
import { parseKeySet, signPlaybackToken } from '@millrace/domain';
import { createTokens } from './tokens.ts';

const keySet = parseKeySet(`k1:${'1'.repeat(32)}`);
const sign = (videoId: string) =>
  signPlaybackToken({ kind: 'playback', videoId, domain: 'a.example', expiresAt: new Date(1e12) }, keySet);

describe('the token cache', () => {
  it('verifies a token once and gives the same again until it is forgotten', () => {
    const tokens = createTokens(keySet, 1e6);
    const text = sign('vid_1');
    const first = tokens.verify(text);
    expect(first).toMatchObject({ claims: { videoId: 'vid_1' }, query: `?token=${text}` });
    expect(tokens.verify(text)).toBe(first);
    if (first !== null) tokens.forget(first);
    expect(tokens.verify(text)).not.toBe(first);
    expect(tokens.verify(text)).toEqual(first);
  });

  it('holds no more than its bound: the oldest are verified anew', () => {
    const tokens = createTokens(keySet, 10_000);
    const texts = Array.from({ length: 11 }, (_, n) => sign(`vid_${n}`));
    const first = tokens.verify(texts[0] ?? '');
    for (const text of texts) tokens.verify(text);
    expect(tokens.verify(texts[10] ?? '')).toBe(tokens.verify(texts[10] ?? ''));
    expect(tokens.verify(texts[0] ?? '')).not.toBe(first);
  });

  it('is not filled by false tokens', () => {
    const tokens = createTokens(keySet, 4_000);
    const text = sign('vid_1');
    const first = tokens.verify(text);
    for (let n = 0; n < 1_000; n++) expect(tokens.verify(`${text.slice(0, -6)}${100_000 + n}`)).toBeNull();
    expect(tokens.verify(text)).toBe(first);
  });
});
