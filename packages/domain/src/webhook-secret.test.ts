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

  it('opens as earlier versions sealed it, and however short it is', () => {
    const earlier = 'k1.iRxlY_bbWTbyOqaCoAvM0cdY0SxIzDx4181pyiiQXJyTv4ot1cozLA';
    expect(openWebhookSecret(earlier, 'whe_1', keySet)).toBe('whsec_issued');
    expect(openWebhookSecret(sealWebhookSecret('', 'whe_1', keySet), 'whe_1', keySet)).toBe('');
  });

  const damaged = 'the sealed secret is damaged, or of another endpoint';
  it.each<[string, string, string, string]>([
    ['another endpoint', sealed, 'whe_2', damaged],
    ['a changed byte', `${sealed.slice(0, -2)}${sealed.endsWith('AA') ? 'BB' : 'AA'}`, 'whe_1', damaged],
    ['a cut', sealed.slice(0, 20), 'whe_1', 'the sealed secret is cut short'],
    ['no key id', sealed.slice(sealed.indexOf('.') + 1), 'whe_1', 'there is no key "" in the set'],
    ['nothing', '', 'whe_1', 'there is no key "" in the set'],
  ])('does not open with %s, and says so', (_what, text, endpointId, message) => {
    let thrown: unknown;
    try {
      openWebhookSecret(text, endpointId, keySet);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(SealedSecretError);
    expect(thrown).toMatchObject({ name: 'SealedSecretError', code: 'sealed_secret_unreadable', message });
    expect((thrown as Error).cause !== undefined).toBe(message === damaged);
  });
});
