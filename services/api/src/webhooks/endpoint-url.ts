import { ProblemError } from '@millrace/contract';
import { checkEgressUrl, EgressError } from '@millrace/platform';
import { type ApiConfig } from '../config.ts';

type UrlRules = Pick<ApiConfig, 'DNS_SERVERS' | 'WEBHOOKS_ALLOW_LOOPBACK'>;

/** What the URL standard drops or reads as something else: nobody means it. */
const oddCharacters = /[\s\\\u0000-\u0020\u007f]/;

/**
 * Refuses what no delivery could ever go to (contract "Webhook endpoints"): the same guard decides that lets
 * deliveries out. A name that does not resolve yet is accepted.
 * @throws ProblemError `invalid_request` naming `url`
 */
export async function assertEndpointUrl(url: string, config: UrlRules): Promise<void> {
  const refuse = (message: string, cause?: unknown): ProblemError =>
    new ProblemError('invalid_request', {
      detail: `url: ${message}.`,
      errors: [{ path: 'url', message }],
      cause,
    });
  if (oddCharacters.test(url)) throw refuse('has white space or a backslash');
  if (!/^https?:\/\/[^/]/i.test(url)) throw refuse('is no https URL');
  try {
    await checkEgressUrl(url, {
      servers: config.DNS_SERVERS,
      loopback: config.WEBHOOKS_ALLOW_LOOPBACK,
    });
  } catch (error) {
    throw error instanceof EgressError ? refuse(error.message, error) : error;
  }
}
