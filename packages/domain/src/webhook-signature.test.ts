import { createHmac } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { signWebhook, webhookKey } from './webhook-signature.ts';

describe('signWebhook', () => {
  // Computed with: printf '1700000000.{"id":"evt_1"}' | openssl dgst -sha256 -hmac 'whsec_test'
  it('gives what openssl gives for the same bytes [SIG-002, SIG-003]', () => {
    expect(signWebhook(webhookKey('whsec_test'), Buffer.from('{"id":"evt_1"}'), 1_700_000_000)).toBe(
      't=1700000000,v1=c89214b5b5da833daed6f0b8c5bb6bd58cea9022bd80ccc78230f3942d632925',
    );
  });

  it('signs bytes, not text: what is no UTF-8 counts too [SIG-002, SIG-003]', () => {
    const body = Buffer.from([0xff, 0x00, 0x7b]);
    const v1 = createHmac('sha256', Buffer.from('whsec_é')).update(Buffer.concat([Buffer.from('5.'), body]));
    expect(signWebhook(webhookKey('whsec_é'), body, 5)).toBe(`t=5,v1=${v1.digest('hex')}`);
  });
});
