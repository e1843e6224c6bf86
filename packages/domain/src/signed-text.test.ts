import { createHmac } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { parseKeySet } from './keys.ts';
import { signText, verifyText } from './signed-text.ts';

const secret = '1'.repeat(32);
const keySet = parseKeySet(`k1:${secret}`);
const purpose = 'test';

/** Text that is signed as `signText` does it, whatever its payload is. */
function signed(payload: string): string {
  const body = Buffer.from(payload).toString('base64url');
  return `${body}.${createHmac('sha256', secret).update(`${purpose}\n${body}`).digest('base64url')}`;
}

describe('signed text', () => {
  it('carries its payload and the name of its key, and says it in UTF-8', () => {
    const text = signText(purpose, { title: 'Ünïcode 🎬' }, keySet);
    expect(text).toBe(signed('{"kid":"k1","title":"Ünïcode 🎬"}'));
    expect(verifyText(purpose, text, keySet)).toEqual({ kid: 'k1', title: 'Ünïcode 🎬' });
  });

  it('may have 2,048 characters and not more', () => {
    const padded = (bytes: number): string => signed(`{"kid":"k1","pad":"${'x'.repeat(bytes)}"}`);
    expect([padded(1_482).length, padded(1_483).length]).toEqual([2_048, 2_050]);
    expect(verifyText(purpose, padded(1_482), keySet)).not.toBeNull();
    expect(verifyText(purpose, padded(1_483), keySet)).toBeNull();
  });

  it.each([
    'null',
    '1',
    '"k1"',
    '[]',
    '{}',
    '{"kid":null}',
    '{"kid":1}',
    '{"kid":["k1"]}',
    '{"kid":"k2"}',
    '{',
    '',
  ])('with the payload %s is none', (payload) => {
    expect(verifyText(purpose, signed(payload), keySet)).toBeNull();
  });

  it.each(['', '.', 'e30', 'e30.', '.e30', '..', signed('{"kid":"k1"}').replace('.', '')])(
    '%j is none',
    (text) => {
      expect(verifyText(purpose, text, keySet)).toBeNull();
    },
  );
});
