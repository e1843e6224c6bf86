import { createSecretKey, randomBytes } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { createManualClock } from '@millrace/testing';
import fc from 'fast-check';
import { createPartUrls, type PartUrlKeys } from './part-urls.ts';

const oldKey = createSecretKey(randomBytes(32));
const newKey = createSecretKey(randomBytes(32));
const keys: PartUrlKeys = { signing: { kid: 'old', key: oldKey }, byKid: new Map([['old', oldKey]]) };
const clock = createManualClock(new Date('2030-01-01T00:00:00.000Z'));
const make = (options: { base?: string; keys?: PartUrlKeys } = {}): ReturnType<typeof createPartUrls> =>
  createPartUrls({
    publicUrl: () => options.base ?? 'http://127.0.0.1:9',
    keys: options.keys ?? keys,
    clock,
  });

const target = { key: 'videos/vid_1/source', uploadId: '0'.repeat(31) + 'f', partNumber: 7 };
const signed = make().sign({ ...target, expiresAt: new Date('2030-01-01T01:00:00.000Z') });
const path = signed.slice('http://127.0.0.1:9'.length);

describe('part URLs', () => {
  it('give back what was signed', () => {
    expect(make().verify(path)).toEqual(target);
  });

  it('refuse a key that is not well-formed, even signed', () => {
    const url = make().sign({ ...target, key: 'a/../b', expiresAt: new Date('2030-01-01T01:00:00.000Z') });
    expect(make().verify(url.slice('http://127.0.0.1:9'.length))).toEqual({ refused: 'malformed' });
  });

  it('keep the path of a public URL that has one', () => {
    for (const base of ['https://uploads.example.com/store', 'https://uploads.example.com/store/']) {
      const urls = make({ base });
      const url = urls.sign({ ...target, expiresAt: new Date('2030-01-01T01:00:00.000Z') });
      expect(url).toMatch(/^https:\/\/uploads\.example\.com\/store\/upload\/videos\//);
      expect(urls.verify(new URL(url).pathname + new URL(url).search)).toEqual(target);
      expect(urls.verify(path)).toEqual({ refused: 'malformed' });
    }
  });

  it('expire at their instant [UPL-003]', async () => {
    const moving = createManualClock(new Date('2030-01-01T00:59:59.999Z'));
    const urls = createPartUrls({ publicUrl: () => 'http://127.0.0.1:9', keys, clock: moving });
    expect(urls.verify(path)).toEqual(target);
    await moving.advance(1);
    expect(urls.verify(path)).toEqual({ refused: 'expired' });
    // A longer life that nobody signed is a forgery, not an expiry.
    expect(urls.verify(path.replace('expires=1', 'expires=2'))).toEqual({ refused: 'bad_signature' });
  });

  it('verify with every key of the set, and with no other', () => {
    const both = new Map([
      ['new', newKey],
      ['old', oldKey],
    ]);
    expect(make({ keys: { signing: { kid: 'new', key: newKey }, byKid: both } }).verify(path)).toEqual(
      target,
    );
    const only = new Map([['new', newKey]]);
    const rotated = make({ keys: { signing: { kid: 'new', key: newKey }, byKid: only } });
    expect(rotated.verify(path)).toEqual({ refused: 'bad_signature' });
    expect(rotated.verify(path.replace('kid=old', 'kid=new'))).toEqual({ refused: 'bad_signature' });
  });

  it('have one spelling: no other character anywhere passes', () => {
    const mutation = fc.record({
      at: fc.nat(path.length),
      removed: fc.nat(2),
      added: fc.string({ maxLength: 3, unit: 'binary' }),
    });
    fc.assert(
      fc.property(mutation, ({ at, removed, added }) => {
        const other = path.slice(0, at) + added + path.slice(at + removed);
        fc.pre(other !== path);
        expect(make().verify(other)).toHaveProperty('refused');
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    [
      'the last character of the signature with other unused bits',
      (url: string) => url.replace(/.$/, nextLetter),
    ],
    ['padding', (url: string) => `${url}=`],
    ['an added parameter', (url: string) => `${url}&x=1`],
    ['a repeated parameter', (url: string) => url.replace('?', '?partNumber=7&')],
    ['another order', (url: string) => url.replace(/(partNumber=7)&(uploadId=\w+)/, '$2&$1')],
    ['a percent-encoded character', (url: string) => url.replace('vid_1', 'vid%5F1')],
    ['a leading zero', (url: string) => url.replace('partNumber=7', 'partNumber=07')],
    ['a double slash', (url: string) => url.replace('/upload/', '/upload//')],
    ['a fragment', (url: string) => `${url}#x`],
    ['a proxy’s absolute form', (url: string) => `http://127.0.0.1:9${url}`],
  ])('refuse %s', (_name, spell) => {
    expect(make().verify(spell(path))).toHaveProperty('refused');
  });
});

/** 43 characters carry 258 bits of which 256 count: the last character has four spellings for a lax decoder. */
function nextLetter(letter: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return alphabet[alphabet.indexOf(letter) ^ 1] ?? '';
}
