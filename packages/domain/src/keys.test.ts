import { describe, expect, it } from '@jest/globals';
import { KeySetError, keySetText, parseKeySet, sharedSecretsOf, sharedSecretText } from './keys.ts';

const secretA = 'a'.repeat(32);
const secretB = 'b:'.repeat(20);

const failure = (text: string): KeySetError => {
  try {
    parseKeySet(text);
  } catch (error) {
    if (error instanceof KeySetError) return error;
    throw error;
  }
  throw new Error('the key set was accepted');
};

describe('parseKeySet', () => {
  it('signs with the first key and verifies with all [SEC-001]', () => {
    const keySet = parseKeySet(` k1:${secretA}, k2:${secretB}\n`);
    expect(keySet.signing.kid).toBe('k1');
    expect([...keySet.byKid.keys()]).toEqual(['k1', 'k2']);
    expect(keySet.byKid.get('k1')).toBe(keySet.signing.key);
    expect(keySet.byKid.get('k2')?.export().toString()).toBe(secretB);
  });

  it('refuses a secret under 32 bytes, naming the key and never the secret [SEC-002]', () => {
    const { message } = failure(`k1:${secretA},old:tooshortasecret`);
    expect(message).toContain('"old"');
    expect(message).toContain('15 bytes');
    expect(message).not.toContain('tooshort');
    expect(() => parseKeySet(`k1:${'ü'.repeat(16)}`)).not.toThrow();
  });

  it('refuses a kid that appears twice', () => {
    expect(failure(`k1:${secretA},k1:${secretB}`).message).toBe('key "k1" appears twice');
  });

  it.each([
    '',
    ',',
    `k1:${secretA},`,
    secretA,
    `:${secretA}`,
    `a b:${secretA}`,
    `${'k'.repeat(33)}:${secretA}`,
  ])('refuses %j without repeating what may be a secret', (text) => {
    const { message, name, code } = failure(text);
    expect([name, code]).toEqual(['KeySetError', 'invalid_key_set']);
    expect(message).toMatch(/^key \d is not of the form kid:secret$/);
  });
});

describe('keySetText', () => {
  it('is a key set in a configuration, and tells what is wrong with one', () => {
    expect(keySetText.parse(`k1:${secretA}`).signing.kid).toBe('k1');
    const issues = keySetText.safeParse('k1:short').error?.issues;
    expect(issues).toMatchObject([
      { code: 'custom', message: 'the secret of key "k1" has 5 bytes, at least 32 are needed' },
    ]);
  });
});

describe('sharedSecretsOf', () => {
  it('gives each secret as it is presented, without the white space around it', () => {
    expect(sharedSecretsOf(`${secretA}, ${secretB}\n`)).toEqual([secretA, secretB]);
    expect(sharedSecretsOf(secretA)).toEqual([secretA]);
  });
});

describe('sharedSecretText', () => {
  it.each([
    [secretA, true],
    [`${secretA},${secretB}`, true],
    [`${secretA},short`, false],
    [`${secretA},`, false],
    ['short', false],
    [`${secretA}, ${'b'.repeat(31)}`, false],
    [`${'a'.repeat(31)} `, false],
  ])('%s: %s', (text, fits) => {
    expect(sharedSecretText.safeParse(text).success).toBe(fits);
  });

  it('says what is wrong with one, without repeating it', () => {
    expect(sharedSecretText.safeParse('short').error?.issues[0]?.message).toBe('has less than 32 bytes');
  });
});
