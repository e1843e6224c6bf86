import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createHash } from 'node:crypto';
import {
  areSameParts,
  checkJoined,
  checkParts,
  type HeldPart,
  largestUploadBytes,
  multipartEtag,
  partLayout,
} from './upload-parts.ts';

const MiB = 1024 ** 2;
const GiB = 1024 ** 3;

describe('partLayout', () => {
  it.each([
    [1, 16, 1],
    [16 * MiB, 16, 1],
    [16 * MiB + 1, 16, 2],
    [125 * GiB, 16, 8_000],
    [125 * GiB + 1, 24, 5_334],
    [500 * GiB, 64, 8_000],
  ])('cuts %d bytes into parts of %d MiB [UPL-005, UPL-006]', (sizeBytes, partMiB, partCount) => {
    expect(partLayout(sizeBytes)).toEqual({ partSizeBytes: partMiB * MiB, partCount });
  });

  it('covers every size within the bounds [UPL-005, UPL-006]', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: largestUploadBytes }), (sizeBytes) => {
        const { partSizeBytes, partCount } = partLayout(sizeBytes);
        expect(partSizeBytes % (8 * MiB)).toBe(0);
        expect(partSizeBytes).toBeGreaterThanOrEqual(16 * MiB);
        expect(partSizeBytes).toBeLessThanOrEqual(64 * MiB);
        expect(partCount).toBeLessThanOrEqual(8_000);
        expect(partSizeBytes * partCount).toBeGreaterThanOrEqual(sizeBytes);
        expect(partSizeBytes * (partCount - 1)).toBeLessThan(sizeBytes);
      }),
    );
  });

  it('refuses what no upload may have', () => {
    expect(() => partLayout(0)).toThrow(new RangeError('no parts for 0 bytes'));
    expect(() => partLayout(500 * GiB + 1)).toThrow(RangeError);
  });
});

const etagOf = (text: string): string => `"${createHash('md5').update(text).digest('hex')}"`;
const part = (partNumber: number, sizeBytes = 16 * MiB): HeldPart => ({
  partNumber,
  etag: etagOf(String(partNumber)),
  sizeBytes,
});
const name = ({ partNumber, etag }: HeldPart): { partNumber: number; etag: string } => ({ partNumber, etag });
const held = [part(1), part(2), part(3, 10)];

describe('checkParts', () => {
  it('takes exactly what is stored, in any order, with and without quotes [UPL-231]', () => {
    const named = [part(3), part(1), part(2)].map(name);
    expect(checkParts(named, held)).toEqual({ ok: true, parts: held, sizeBytes: 32 * MiB + 10 });
    const bare = named.map((each) => ({ ...each, etag: each.etag.slice(1, -1) }));
    expect(checkParts(bare, held)).toMatchObject({ ok: true });
  });

  it('takes a single part however small, even an empty one', () => {
    expect(checkParts([name(part(1))], [part(1, 1)])).toMatchObject({ ok: true, sizeBytes: 1 });
    expect(checkParts([name(part(1))], [part(1, 0)])).toMatchObject({ ok: true, sizeBytes: 0 });
  });

  it('sorts what the store lists in another order', () => {
    const verdict = checkParts(held.map(name), [part(3, 10), part(1), part(2)]);
    expect(verdict).toEqual({ ok: true, parts: held, sizeBytes: 32 * MiB + 10 });
  });

  const etag = etagOf('1');
  it.each([
    ['nothing named', [], held, ['parts', 'names no part']],
    ['nothing named or stored', [], [], ['parts', 'names no part']],
    [
      'a part twice',
      [part(1), part(2), part(2), part(3)].map(name),
      held,
      ['parts[2].partNumber', 'part 2 is named twice'],
    ],
    ['a gap', [part(1), part(3)].map(name), [part(1), part(3)], ['parts', 'part 2 is missing']],
    ['no first part', [part(2)].map(name), [part(2)], ['parts', 'part 1 is missing']],
    [
      'a part that was not sent',
      [part(1), part(2)].map(name),
      [part(1)],
      ['parts[1].partNumber', 'part 2 was not uploaded'],
    ],
    [
      'a part left out',
      [part(1), part(2)].map(name),
      held,
      ['parts', 'part 3 was uploaded but is not named'],
    ],
    [
      'a wrong ETag',
      [name(part(1)), { partNumber: 2, etag }, name(part(3))],
      held,
      ['parts[1].etag', 'is not the ETag of part 2'],
    ],
    [
      'a first part under 5 MiB',
      [part(1), part(2)].map(name),
      [part(1, 5 * MiB - 1), part(2)],
      ['parts[0].partNumber', 'part 1 has 5242879 bytes; every part but the last needs 5242880'],
    ],
  ])('names the fault: %s [UPL-232]', (_what, named, stored, [path, message]) => {
    expect(checkParts(named, stored)).toEqual({ ok: false, errors: [{ path, message }] });
  });

  it('accepts a first part of just 5 MiB', () => {
    expect(checkParts([part(1), part(2)].map(name), [part(1, 5 * MiB), part(2)])).toMatchObject({ ok: true });
  });

  it('tells as many faults as there are, up to twenty', () => {
    for (const highest of [3, 19, 20, 21, 22]) {
      const verdict = checkParts([name(part(highest))], [part(highest)]);
      expect(verdict.ok ? [] : verdict.errors).toHaveLength(Math.min(highest - 1, 20));
    }
  });

  it('tells at most twenty faults, however far off the list is', () => {
    const verdict = checkParts([{ partNumber: 10_000, etag }], [part(1)]);
    expect(verdict.ok ? [] : verdict.errors).toHaveLength(20);
  });
});

describe('multipartEtag', () => {
  it('is the MD5 of the MD5s with their number, whatever the order', () => {
    const binary = Buffer.concat(['1', '2'].map((text) => createHash('md5').update(text).digest()));
    const expected = `"${createHash('md5').update(binary).digest('hex')}-2"`;
    expect(multipartEtag([part(1), part(2)])).toBe(expected);
    expect(multipartEtag([part(2), part(1)])).toBe(expected);
  });
});

describe('checkJoined', () => {
  const joined = { etag: multipartEtag([part(1), part(2)]), sizeBytes: 77 };
  const bare = ({ partNumber, etag: quoted }: HeldPart) => ({ partNumber, etag: quoted.slice(1, -1) });

  it('takes the parts that the object was joined of, in any order and spelling', () => {
    const parts = [name(part(1)), name(part(2))];
    expect(checkJoined([bare(part(2)), bare(part(1))], joined)).toEqual({ ok: true, parts, sizeBytes: 77 });
  });

  it.each([
    ['no part', [], 'names no part'],
    ['a gap', [name(part(1)), name(part(3))], 'part 2 is missing'],
    ['fewer', [name(part(1))], 'are not what was uploaded'],
    ['others', [name(part(1)), { partNumber: 2, etag: part(1).etag }], 'are not what was uploaded'],
  ])('refuses %s', (_what, named, message) => {
    expect(checkJoined(named, joined)).toEqual({ ok: false, errors: [{ path: 'parts', message }] });
  });

  it('believes an object whose ETag is no digest, but no list with faults', () => {
    const opaque = { etag: '"opaque"', sizeBytes: 5, opaqueEtag: true as const };
    expect(checkJoined([name(part(1))], opaque)).toMatchObject({ ok: true, sizeBytes: 5 });
    expect(checkJoined([], opaque).ok).toBe(false);
  });
});

describe('areSameParts', () => {
  it('looks at numbers and ETags, not at order, quotes or sizes', () => {
    const bare = { partNumber: 1, etag: part(1).etag.slice(1, -1) };
    expect(areSameParts([name(part(2)), bare], [part(1), part(2)])).toBe(true);
    expect(areSameParts([name(part(1))], [part(1), part(2)])).toBe(false);
    expect(areSameParts([{ ...name(part(1)), partNumber: 2 }], [part(1)])).toBe(false);
    expect(areSameParts([{ ...name(part(1)), etag: '"other"' }], [part(1)])).toBe(false);
  });
});
