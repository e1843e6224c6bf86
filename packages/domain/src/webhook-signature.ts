import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';

/**
 * The key of an endpoint's signatures: its secret as issued, `whsec_` included, read as UTF-8. Worth keeping, since
 * making it costs more than signing.
 */
export const webhookKey = (secret: string): KeyObject => createSecretKey(secret, 'utf8');

/**
 * The value of `Svc-Signature` for one attempt (contract "Events"): `t=<unix seconds>,v1=<hex HMAC-SHA256>` of
 * `<t>.<raw body>`.
 */
export function signWebhook(key: KeyObject, body: Uint8Array, unixSeconds: number): string {
  const mac = createHmac('sha256', key).update(`${unixSeconds}.`).update(body);
  return `t=${unixSeconds},v1=${mac.digest('hex')}`;
}
