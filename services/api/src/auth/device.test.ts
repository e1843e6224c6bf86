import { describe, expect, it } from '@jest/globals';
import { parseKeySet, signText } from '@millrace/domain';
import { type Database } from '@millrace/store';
import { type IncomingHttpHeaders } from 'node:http';
import { type ApiConfig } from '../config.ts';
import { refuseBannedDevice, rememberDevice } from './device.ts';

const keys = parseKeySet(`s1:${'s'.repeat(32)}`);
const config = { SIGN_IN_KEYS: keys } as ApiConfig;
const purpose = 'millrace.device.v1';
const sent = (value: string): IncomingHttpHeaders => ({ cookie: `svc_device=${value}` });
const genuine = (dev: unknown = 'device-1'): IncomingHttpHeaders => sent(signText(purpose, { dev }, keys));

describe('rememberDevice', () => {
  it('keeps the device that a genuine cookie names, and renews the cookie for 400 days', () => {
    const { deviceId, cookie } = rememberDevice({ config }, genuine());
    expect(deviceId).toBe('device-1');
    expect(cookie).toBe(
      `svc_device=${signText(purpose, { dev: 'device-1' }, keys)}; Path=/; Max-Age=34560000; HttpOnly; Secure; SameSite=Lax`,
    );
  });

  it.each<[string, IncomingHttpHeaders]>([
    ['without a cookie', {}],
    ['with another cookie', { cookie: `svc_devices=${signText(purpose, { dev: 'device-1' }, keys)}` }],
    ['with text that nobody signed', sent('device-1')],
    ['with text signed for something else', sent(signText('cursor', { dev: 'device-1' }, keys))],
    ['with another key', sent(signText(purpose, { dev: 'device-1' }, parseKeySet(`s1:${'t'.repeat(32)}`)))],
    ['with an empty id', genuine('')],
    ['with an id that is too long', genuine('d'.repeat(65))],
    ['with an id that is no text', genuine(1)],
  ])('makes a new device of a browser %s', (_what, headers) => {
    const { deviceId, cookie } = rememberDevice({ config }, headers);
    expect(deviceId).toMatch(/^[A-Za-z0-9]{22}$/);
    expect(rememberDevice({ config }, { cookie: (cookie ?? '').split(';')[0] }).deviceId).toBe(deviceId);
    expect(rememberDevice({ config }, headers).deviceId).not.toBe(deviceId);
  });

  it('takes ids of 1 to 64 characters', () => {
    for (const id of ['d', 'd'.repeat(64)]) {
      expect(rememberDevice({ config }, genuine(id)).deviceId).toBe(id);
    }
  });

  it('gives no cookie, and believes none, without keys to sign with', () => {
    const { deviceId, cookie } = rememberDevice({ config: {} as ApiConfig }, genuine());
    expect(deviceId).toMatch(/^[A-Za-z0-9]{22}$/);
    expect(cookie).toBeNull();
  });
});

describe('refuseBannedDevice', () => {
  it('does not ask the record about a browser without a device', async () => {
    const store = {} as Database;
    await expect(refuseBannedDevice({ config, store }, {})).resolves.toBeUndefined();
  });
});
