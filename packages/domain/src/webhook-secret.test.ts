import { describe, expect, it } from '@jest/globals';
import { parseKeySet } from './keys.ts';
import {
  newWebhookSecret,
  openWebhookSecret,
  SealedSecretError,
  sealWebhookSecret,
} from './webhook-secret.ts';

const [old, next] = [`k1:${'1'.repeat(32)}`, `k2:${'2'.repeat(32)}`];
const keySet = parseKeySet(old);
const secret = newWebhookSecret();
const sealed = sealWebhookSecret(secret, 'whe_1', keySet);

describe('a sealed signing secret', () => {
  it('opens to what was issued, and shows nothing of it [WHE-002, SEC-003]', () => {
    expect(secret).toMatch(/^whsec_[A-Za-z0-9_-]{43}$/);
    expect(openWebhookSecret(sealed, 'whe_1', keySet)).toBe(secret);
    expect(sealed).not.toContain(secret.slice(6));
    expect(sealWebhookSecret(secret, 'whe_1', keySet)).not.toBe(sealed);
    expect(newWebhookSecret()).not.toBe(secret);
  });

  it('opens while its key is in the set, and new ones use the first key', () => {
    const rotated = parseKeySet(`${next},${old}`);
    expect(openWebhookSecret(sealed, 'whe_1', rotated)).toBe(secret);
    expect(sealWebhookSecret(secret, 'whe_1', rotated).startsWith('k2.')).toBe(true);
    expect(() => openWebhookSecret(sealed, 'whe_1', parseKeySet(next))).toThrow(SealedSecretError);
  });

  it.each<[string, string, string]>([
    ['another endpoint', sealed, 'whe_2'],
    ['a changed byte', `${sealed.slice(0, -2)}${sealed.endsWith('AA') ? 'BB' : 'AA'}`, 'whe_1'],
    ['a cut', sealed.slice(0, 20), 'whe_1'],
    ['no key id', sealed.slice(sealed.indexOf('.') + 1), 'whe_1'],
    ['nothing', '', 'whe_1'],
  ])('does not open with %s', (_what, text, endpointId) => {
    expect(() => openWebhookSecret(text, endpointId, keySet)).toThrow(SealedSecretError);
  });
});
