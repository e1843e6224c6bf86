import { createHmac, timingSafeEqual } from 'node:crypto';
import { type IncomingHttpHeaders } from 'node:http';
import { ProblemError } from '@millrace/contract';
import { z } from 'zod';

/** All that is read of a provider's report in this version: its own id, by which repeats are told. */
const event = z.object({ id: z.string().min(1).max(255) });

/**
 * The id of a payment provider's report (contract "Billing").
 * @param secret agreed with the provider; undefined: there is none
 * @throws ProblemError `billing_unavailable`, `unauthorized`, `invalid_request`
 */
export function billingEventId(
  raw: Buffer,
  headers: IncomingHttpHeaders,
  secret: string | undefined,
): string {
  if (secret === undefined) throw new ProblemError('billing_unavailable');
  const signature = headers['x-signature'];
  const given = Buffer.from(typeof signature === 'string' ? signature : '', 'hex');
  const expected = createHmac('sha256', secret).update(raw).digest();
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
    throw new ProblemError('unauthorized');
  }
  try {
    return event.parse(JSON.parse(raw.toString('utf8'))).id;
  } catch (cause) {
    throw new ProblemError('invalid_request', { detail: 'The body is no report with an `id`.', cause });
  }
}
