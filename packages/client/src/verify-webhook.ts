import { createHmac, timingSafeEqual } from 'node:crypto';
import { webhookEvent, type WebhookEvent } from '@millrace/contract';

export type { WebhookEvent } from '@millrace/contract';

export type WebhookVerificationCode =
  /** `Svc-Signature` is missing or not of the form `t=…,v1=…`. */
  | 'signature_malformed'
  /** `t` is more than five minutes in the past or the future. */
  | 'timestamp_out_of_range'
  /** The body or the time is not what was signed, or the secret is another one. */
  | 'signature_mismatch'
  /** Genuine, but no event that this version knows. */
  | 'body_unreadable';

/** A webhook that must not be acted on. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
  readonly code: WebhookVerificationCode;
  constructor(code: WebhookVerificationCode, message: string, options?: { cause: unknown }) {
    super(message, options);
    this.code = code;
  }
}

export interface WebhookToVerify {
  /** The raw bytes of the request, never JSON that was written again. A string is taken as UTF-8. */
  body: Uint8Array | string;
  /** The header `Svc-Signature`. */
  signature: string | null | undefined;
  /** The endpoint's signing secret as issued, `whsec_` included. */
  secret: string;
  /** The present unless told. */
  now?: Date;
}

const toleranceSeconds = 300;

/**
 * The event of a genuine webhook, by the receiver's rules (contract "Events"): the HMAC-SHA256 of `<t>.<raw body>`
 * under the secret equals `v1`, compared in constant time, and `t` is within five minutes. Events come at least
 * once and in any order: keep their `id`s, and ignore a video older than the one that you have.
 *
 * @throws WebhookVerificationError; TypeError without a secret, since anybody can sign with none
 */
export function verifyWebhook({ body, signature, secret, now = new Date() }: WebhookToVerify): WebhookEvent {
  if (secret === '') throw new TypeError('the signing secret is empty');
  const match = /^t=([0-9]{1,12}),v1=([0-9a-f]{64})$/.exec(signature ?? '');
  const [, t, v1] = match ?? [];
  if (t === undefined || v1 === undefined) {
    throw new WebhookVerificationError('signature_malformed', 'Svc-Signature is missing or malformed');
  }
  // Signed before it is looked at: a forged `t` must not be told from a wrong signature by its age.
  const expected = createHmac('sha256', secret).update(`${t}.`).update(body).digest();
  if (!timingSafeEqual(expected, Buffer.from(v1, 'hex'))) {
    throw new WebhookVerificationError('signature_mismatch', 'the signature is not of this body and secret');
  }
  const ageSeconds = now.getTime() / 1000 - Number(t);
  // So that a time which is none refuses too.
  if (!(Math.abs(ageSeconds) <= toleranceSeconds)) {
    throw new WebhookVerificationError(
      'timestamp_out_of_range',
      'the signature is older than five minutes, or not of now',
    );
  }
  return parsed(body);
}

function parsed(body: Uint8Array | string): WebhookEvent {
  try {
    const text = typeof body === 'string' ? body : Buffer.from(body).toString('utf8');
    return webhookEvent.parse(JSON.parse(text));
  } catch (error) {
    throw new WebhookVerificationError('body_unreadable', 'the body is no event', { cause: error });
  }
}
