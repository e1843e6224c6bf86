import { type IncomingMessage } from 'node:http';
import { ProblemError } from '@millrace/contract';
import { clientIp, clientNetwork } from '@millrace/platform';
import { createRateWindows } from '@millrace/store';
import { type ApiConfig } from './config.ts';
import { type ApiDeps } from './deps.ts';

const windowMs = 60_000;

interface Limit {
  bucket: string;
  prefix: string;
  most: number;
}

/** The limits of the contract; an address counts against each whose prefix it has. */
const limitsOf = (config: ApiConfig): readonly Limit[] => [
  { bucket: 'v1', prefix: '/v1/', most: config.API_RATE_PER_MINUTE },
  { bucket: 'auth', prefix: '/auth/', most: config.AUTH_RATE_PER_MINUTE },
  { bucket: 'demo', prefix: '/v1/demo/playback', most: config.DEMO_RATE_PER_MINUTE },
];

export interface RateLimit {
  /** @throws ProblemError `rate_limited` */
  limit: (request: IncomingMessage, path: string) => Promise<void>;
  /** Tells the record of the last requests. */
  close(): Promise<void>;
}

/**
 * Counts a client's requests in fixed windows of a minute, over all replicas (contract "Limits"). Whatever keeps
 * the record from counting lets requests through: the limit protects the service, it does not guard secrets.
 */
export function createRateLimit({ config, store, clock, logger, metrics }: ApiDeps): RateLimit {
  const limits = limitsOf(config);
  const refused = metrics.counter('millrace_rate_limited_total', 'Requests over a limit.', ['bucket']);
  for (const { bucket } of limits) refused.inc({ bucket }, 0);
  const uncounted = metrics.counter('millrace_rate_uncounted_total', 'Requests that could not be counted.');
  const windows = createRateWindows(store, (passed, error) => {
    uncounted.inc({}, passed);
    logger.warn({ err: error, passed }, 'requests not counted');
  });
  /** Of the present window. */
  let startsAt = new Date(0);
  const limit = async (request: IncomingMessage, path: string): Promise<void> => {
    const now = clock.now().getTime();
    if (now < startsAt.getTime() || now >= startsAt.getTime() + windowMs)
      startsAt = new Date(now - (now % windowMs));
    const client = clientOf(request, config.TRUSTED_PROXIES);
    for (const { bucket, prefix, most } of limits) {
      if (!path.startsWith(prefix)) continue;
      const hit = windows.hit({ bucket, client, startsAt, most });
      const count =
        typeof hit === 'number'
          ? hit
          : await hit.catch((error: unknown) => {
              uncounted.inc();
              logger.warn({ err: error, bucket }, 'request not counted');
              return 0;
            });
      if (count <= most) continue;
      refused.inc({ bucket });
      const retryAfter = Math.ceil((startsAt.getTime() + windowMs - now) / 1000);
      throw new ProblemError('rate_limited', {
        detail: `More than ${most} requests in a minute.`,
        retryAfter,
      });
    }
  };
  return { limit, close: () => windows.close() };
}

function clientOf({ headers, socket }: IncomingMessage, trustedProxies: number): string {
  const forwarded = headers['x-forwarded-for'];
  const text = Array.isArray(forwarded) ? forwarded.join(',') : (forwarded ?? null);
  // Bounds what a proxy's client can make us store.
  return clientNetwork(clientIp(socket.remoteAddress ?? '', text, trustedProxies)).slice(0, 64);
}
