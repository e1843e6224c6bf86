import { createHmac, timingSafeEqual } from 'node:crypto';
import { type IncomingHttpHeaders } from 'node:http';
import { ProblemError, text } from '@millrace/contract';
import { z } from 'zod';

const name = text({ max: 255 });
/** All that is read of a provider's report in this version. */
const billingEvent = z.object({
  /** The provider's own id, by which repeats are told. */
  id: name,
  payment: z
    .object({
      accountId: name,
      planId: name,
      /** In the currency's smallest unit. */
      amount: z.int(),
      currency: name,
    })
    .optional(),
});
type BillingEvent = z.infer<typeof billingEvent>;

/**
 * A payment provider's report (contract "Account routes").
 * @param secret agreed with the provider; undefined: there is none
 * @throws ProblemError `billing_unavailable`, `unauthorized`, `invalid_request`
 */
export function readBillingEvent(
  raw: Buffer,
  headers: IncomingHttpHeaders,
  secret: string | undefined,
): BillingEvent {
  if (secret === undefined) throw new ProblemError('billing_unavailable');
  const signature = headers['x-signature'];
  const given = Buffer.from(typeof signature === 'string' ? signature : '', 'hex');
  const expected = createHmac('sha256', secret).update(raw).digest();
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
    throw new ProblemError('unauthorized');
  }
  try {
    return billingEvent.parse(JSON.parse(raw.toString('utf8')));
  } catch (cause) {
    throw new ProblemError('invalid_request', {
      detail: 'The body is no report with an `id` and, where one was made, a `payment`.',
      cause,
    });
  }
}
