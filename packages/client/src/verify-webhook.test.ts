import { execFileSync } from 'node:child_process';
import { afterAll, describe, expect, it, jest } from '@jest/globals';
import { type WebhookToVerify } from './verify-webhook.ts';

const crypto = process.getBuiltinModule('node:crypto');
// Watched, not replaced; before anything imports it.
const compared = jest.spyOn(crypto, 'timingSafeEqual');
const { verifyWebhook, WebhookVerificationError } = await import('./verify-webhook.ts');
afterAll(() => {
  compared.mockRestore();
});

const secret = 'whsec_0Ab-cd_é';
const at = 1_700_000_000;
const event = {
  id: 'evt_1',
  type: 'video.ready',
  createdAt: '2026-01-01T00:00:00.000Z',
  projectId: 'prj_1',
  data: {
    video: {
      ...{
        id: 'vid_1',
        projectId: 'prj_1',
        title: 'a / "b" é 日本 🎬\\',
        status: 'ready',
        durationSeconds: 4.5,
      },
      ...{ qualities: ['360p'], sizeBytes: 5, failure: null, accessMode: 'protected' },
      ...{ createdAt: '2026-01-01T00:00:00.000Z', updatedAt: '2026-01-01T00:00:00.001Z', readyAt: null },
    },
  },
};
/** Signed by openssl: what the helper says must be what anybody else says. */
function opensslSignature(body: Buffer, t: number | string = at, key = secret): string {
  const signed = Buffer.concat([Buffer.from(`${t}.`), body]);
  const out = execFileSync('openssl', ['dgst', '-sha256', '-hmac', key, '-r'], { input: signed });
  return `t=${t},v1=${out.toString('utf8').slice(0, 64)}`;
}

const body = Buffer.from(JSON.stringify(event));
const genuine: WebhookToVerify = {
  body,
  signature: opensslSignature(body),
  secret,
  now: new Date(at * 1000),
};
const codeOf = (change: Partial<WebhookToVerify>): string => {
  try {
    verifyWebhook({ ...genuine, ...change });
    return 'verified';
  } catch (error) {
    if (error instanceof WebhookVerificationError) return error.code;
    throw error;
  }
};

describe('verifyWebhook', () => {
  it('gives the event of a genuine webhook, as bytes or text', () => {
    expect(verifyWebhook(genuine)).toEqual(event);
    expect(verifyWebhook({ ...genuine, body: body.toString('utf8') })).toEqual(event);
  });

  it.each(['0', 'f'])(
    'compares the whole signature in constant time, also one that ends in %s [SIG-007]',
    (last) => {
      compared.mockClear();
      const signature = genuine.signature?.replace(/.$/, last);
      codeOf({ signature });
      const [, v1 = ''] = signature?.split('v1=') ?? [];
      const expected = Buffer.from(genuine.signature?.slice(-64) ?? '', 'hex');
      expect(compared.mock.calls).toEqual([[expected, Buffer.from(v1, 'hex')]]);
    },
  );

  it('gives a test event', () => {
    const { id, createdAt, projectId } = event;
    const sent = { id, type: 'webhook.test', createdAt, projectId, data: { test: true } };
    const test = Buffer.from(JSON.stringify(sent));
    const verified = verifyWebhook({ ...genuine, body: test, signature: opensslSignature(test) });
    expect(verified.data).toEqual({ test: true });
  });

  it('refuses JSON that was written again: the bytes count [SIG-006]', () => {
    expect(codeOf({ body: JSON.stringify(event, null, 1) })).toBe('signature_mismatch');
  });

  it.each<[string, Partial<WebhookToVerify>]>([
    ['another body', { body: `${body.toString('utf8')} ` }],
    ['another secret', { secret: 'whsec_other' }],
    ['the secret without its prefix', { secret: secret.slice(6) }],
    ['another time', { signature: genuine.signature?.replace(`t=${at}`, `t=${at + 1}`) }],
    ['another signature', { signature: `t=${at},v1=${'0'.repeat(64)}` }],
  ])('refuses %s', (_what, change) => {
    expect(codeOf(change)).toBe('signature_mismatch');
  });

  it.each([
    [300, 'verified'],
    [301, 'timestamp_out_of_range'],
    [-300, 'verified'],
    [-301, 'timestamp_out_of_range'],
  ])('of a signature %d s old says %s [SIG-004, SIG-005]', (seconds, code) => {
    expect(codeOf({ now: new Date((at + seconds) * 1000) })).toBe(code);
  });

  it.each([
    null,
    undefined,
    '',
    't=1',
    `v1=${'0'.repeat(64)},t=${at}`,
    `t=${at},v1=${'0'.repeat(63)}`,
    `t=${at},v1=${'0'.repeat(64)},v1=${'0'.repeat(64)}`,
    `t=-5,v1=${'0'.repeat(64)}`,
    `t=1e9,v1=${'0'.repeat(64)}`,
    `t=${at},v1=${'A'.repeat(64)}`,
    ` ${genuine.signature ?? ''}`,
  ])('refuses the header %j', (signature) => {
    expect(codeOf({ signature })).toBe('signature_malformed');
  });

  it('refuses when its clock tells no time', () => {
    expect(codeOf({ now: new Date(Number.NaN) })).toBe('timestamp_out_of_range');
  });

  it('has no use for an empty secret, with which anybody could sign', () => {
    const signature = `t=${at},v1=${crypto.createHmac('sha256', '').update(`${at}.`).update(body).digest('hex')}`;
    expect(() => verifyWebhook({ ...genuine, secret: '', signature })).toThrow(TypeError);
  });

  it.each(['{', '[]', '{"id":"evt_1"}'])('says when the genuine body %j is no event', (text) => {
    const bytes = Buffer.from(text);
    expect(codeOf({ body: bytes, signature: opensslSignature(bytes) })).toBe('body_unreadable');
  });
});
