import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type CursorScope, decodeCursor, encodeCursor } from './cursor.ts';
import { parseKeySet } from './keys.ts';
import { signText } from './signed-text.ts';

const keys = parseKeySet(`a:${'a'.repeat(32)}`);
const scope: CursorScope = {
  operationId: 'listThings',
  owner: 'prj_1',
  filters: { status: 'ready', q: undefined },
};
const position = { createdAt: new Date('2030-01-02T03:04:05.678Z'), id: 'vid_1' };

describe('cursor', () => {
  it('gives the position back, to the millisecond', () => {
    expect(decodeCursor(keys, scope, encodeCursor(keys, scope, position))).toEqual(position);
  });

  it('is the same whatever the order of filters and whether absent ones are named', () => {
    const cursor = encodeCursor(keys, { ...scope, filters: { b: '2', a: '1' } }, position);
    expect(decodeCursor(keys, { ...scope, filters: { a: '1', c: undefined, b: '2' } }, cursor)).toEqual(
      position,
    );
  });

  it('goes on from those that earlier versions gave', () => {
    const given =
      'eyJraWQiOiJhIiwicyI6InZOVWVFbWtXRjlyYXVBRks5cTFUd0wiLCJ0IjoxODkzNTUzNDQ1Njc4LCJpIjoidmlkXzEifQ.' +
      'MD1uy29dztEWE0XV9PA9U3FOF45BmZPIwZHFgLWom5w';
    expect(decodeCursor(keys, { ...scope, filters: { a: '1', b: '2' } }, given)).toEqual(position);
  });

  it.each([{ t: '1893553445678' }, { t: null }, { i: 1 }, { i: null }])(
    'refuses a position that is none: %j',
    (wrong) => {
      const body = encodeCursor(keys, scope, position).split('.')[0] ?? '';
      const { s, t, i } = JSON.parse(Buffer.from(body, 'base64url').toString()) as Record<string, unknown>;
      expect(decodeCursor(keys, scope, signText('cursor', { s, t, i }, keys))).toEqual(position);
      expect(decodeCursor(keys, scope, signText('cursor', { s, t, i, ...wrong }, keys))).toBeNull();
    },
  );

  it.each<[string, CursorScope]>([
    ['another route', { ...scope, operationId: 'listOthers' }],
    ['another project', { ...scope, owner: 'prj_2' }],
    ['another filter', { ...scope, filters: { status: 'failed' } }],
    ['no filter', { operationId: scope.operationId, owner: scope.owner }],
    ['a further filter', { ...scope, filters: { status: 'ready', q: 'x' } }],
    ['a filter moved into another', { ...scope, filters: { 'status":"ready': '' } }],
  ])('is good for nothing on %s [PAG-006]', (_what, other) => {
    expect(decodeCursor(keys, other, encodeCursor(keys, scope, position))).toBeNull();
  });

  it('is good for nothing with another key, or when the text was signed for something else', () => {
    const cursor = encodeCursor(keys, scope, position);
    expect(decodeCursor(parseKeySet(`a:${'b'.repeat(32)}`), scope, cursor)).toBeNull();
    expect(decodeCursor(keys, scope, signText('playback', { t: 1, i: 'vid_1' }, keys))).toBeNull();
  });

  it('survives a new signing key while the old one still verifies', () => {
    const cursor = encodeCursor(keys, scope, position);
    const rotated = parseKeySet(`b:${'b'.repeat(32)},a:${'a'.repeat(32)}`);
    expect(decodeCursor(rotated, scope, cursor)).toEqual(position);
  });

  it('refuses any text that was not made by it, and any change of one character [PAG-005]', () => {
    const cursor = encodeCursor(keys, scope, position);
    fc.assert(fc.property(fc.string(), (text) => decodeCursor(keys, scope, text) === null));
    fc.assert(
      fc.property(fc.nat(cursor.length - 1), fc.string({ minLength: 1, maxLength: 1 }), (at, character) => {
        const changed = cursor.slice(0, at) + character + cursor.slice(at + 1);
        return changed === cursor || decodeCursor(keys, scope, changed) === null;
      }),
      { numRuns: 1_000 },
    );
  });
});
