import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parseKeySet } from './keys.ts';
import { isExpired, type PlaybackClaims, signPlaybackToken, verifyPlaybackToken } from './playback-token.ts';
import { signText } from './signed-text.ts';

const keySet = parseKeySet(`k1:${'1'.repeat(32)}`);
const claims: PlaybackClaims = {
  kind: 'playback',
  videoId: 'vid_0Abc',
  domain: 'shop.example.com',
  expiresAt: new Date('2026-03-01T12:00:00.123Z'),
};
const token = signPlaybackToken(claims, keySet);

describe('verifyPlaybackToken', () => {
  it('gives back what was signed [PBT-006]', () => {
    const claim = fc.record({
      kind: fc.constantFrom('playback' as const, 'preview' as const, 'demo' as const),
      videoId: fc.stringMatching(/^vid_[A-Za-z0-9]{1,22}$/),
      domain: fc.domain(),
      expiresAt: fc.date({ min: new Date(0), noInvalidDate: true }),
    });
    fc.assert(
      fc.property(claim, (made) => {
        expect(verifyPlaybackToken(signPlaybackToken(made, keySet), keySet)).toEqual(made);
      }),
    );
  });

  it('refuses a token with any character changed, added or removed [PBT-006]', () => {
    const alphabet = fc.constantFrom(...Array.from('ABCXYZabcxyz0189-_+/=. %\u0000é'));
    const edit = fc.tuple(fc.nat(token.length), fc.nat(2), alphabet, fc.constantFrom('replace', 'insert'));
    fc.assert(
      fc.property(edit, ([at, removed, character, how]) => {
        const inserted = how === 'insert' ? character : '';
        const edited = token.slice(0, at) + inserted + token.slice(at + removed);
        fc.pre(edited !== token);
        expect(verifyPlaybackToken(edited, keySet)).toBeNull();
      }),
      { numRuns: 2000 },
    );
  });

  it('refuses every other spelling of the same bytes [CDN-333]', () => {
    const last = token.at(-1) ?? '';
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    // 32 bytes leave two unused bits in the 43rd character: four characters decode to the same byte.
    const group = Math.floor(alphabet.indexOf(last) / 4) * 4;
    const siblings = Array.from(alphabet.slice(group, group + 4)).filter((character) => character !== last);
    expect(siblings).toHaveLength(3);
    const spellings = [
      ...siblings.map((character) => token.slice(0, -1) + character),
      `${token}=`,
      `${token}\n`,
      ` ${token}`,
      token.replace('.', '=.'),
      token.replaceAll('-', '+').replaceAll('_', '/').replace('.', '..'),
    ];
    for (const spelling of spellings) expect(verifyPlaybackToken(spelling, keySet)).toBeNull();
  });

  it('never throws and accepts nothing that comes from elsewhere', () => {
    const hostile = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 1200 }),
      fc.tuple(fc.base64String(), fc.base64String()).map(([a, b]) => `${a}.${b}`),
      fc.json().map((json) => `${Buffer.from(json).toString('base64url')}.${'A'.repeat(43)}`),
    );
    fc.assert(
      fc.property(hostile, (text) => {
        expect(verifyPlaybackToken(text, keySet)).toBeNull();
      }),
    );
  });

  it('verifies with every key of the set and signs with the first [SEC-001]', () => {
    const rotated = parseKeySet(`k2:${'2'.repeat(32)},k1:${'1'.repeat(32)}`);
    expect(verifyPlaybackToken(token, rotated)).toEqual(claims);
    expect(verifyPlaybackToken(signPlaybackToken(claims, rotated), keySet)).toBeNull();
    expect(verifyPlaybackToken(token, parseKeySet(`k2:${'2'.repeat(32)}`))).toBeNull();
    expect(verifyPlaybackToken(token, parseKeySet(`k1:${'2'.repeat(32)}`))).toBeNull();
  });

  it('refuses text signed for another purpose, and unfit payloads', () => {
    const payload = { kind: 'playback', vid: 'vid_1', dom: 'a.example', exp: 1 };
    expect(verifyPlaybackToken(signText('millrace.playback.v1', payload, keySet), keySet)).not.toBeNull();
    expect(verifyPlaybackToken(signText('millrace.upload.v1', payload, keySet), keySet)).toBeNull();
    for (const unfit of [{ kind: 'admin' }, { exp: 1.5 }, { exp: 9e15 }, { dom: 1 }, { vid: null }]) {
      const text = signText('millrace.playback.v1', { ...payload, ...unfit }, keySet);
      expect(verifyPlaybackToken(text, keySet)).toBeNull();
    }
  });

  it('refuses text longer than any token it makes', () => {
    const text = signPlaybackToken({ ...claims, videoId: 'v'.repeat(1_500) }, keySet);
    expect(text.length).toBeGreaterThan(2048);
    expect(verifyPlaybackToken(text, keySet)).toBeNull();
    const widest = signPlaybackToken({ ...claims, domain: 'd'.repeat(253) }, keySet);
    expect(verifyPlaybackToken(widest, keySet)?.domain).toHaveLength(253);
  });
});

describe('isExpired', () => {
  it.each([
    ['2026-03-01T12:00:00.122Z', false],
    ['2026-03-01T12:00:00.123Z', true],
    ['2026-03-01T12:00:00.124Z', true],
  ])('at %s is %s [CDN-306]', (now, expired) => {
    expect(isExpired(claims, new Date(now))).toBe(expired);
  });
});
