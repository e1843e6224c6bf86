import { createHmac } from 'node:crypto';

/**
 * The value of `Svc-Signature` for one attempt (contract "Events"): `t=<unix seconds>,v1=<hex HMAC-SHA256>` of
 * `<t>.<raw body>`. The key is the secret as issued, `whsec_` included, read as UTF-8.
 */
export function signWebhook(secret: string, body: Uint8Array, unixSeconds: number): string {
  const mac = createHmac('sha256', secret).update(`${unixSeconds}.`).update(body);
  return `t=${unixSeconds},v1=${mac.digest('hex')}`;
}
