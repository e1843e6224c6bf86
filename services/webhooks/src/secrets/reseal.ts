import { type KeySet, openWebhookSecret, SealedSecretError, sealWebhookSecret } from '@millrace/domain';
import { type Clock, type Logger, type Loop, type Metrics, repeatEvery } from '@millrace/platform';
import { type Database, resealSecret, secretsOfOtherKeys } from '@millrace/store';

const everyMs = 60_000;
const perQuery = 500;

/**
 * Seals every signing secret anew with the first key of the set, so that the others can be retired: the gauge says how
 * many secrets still need them. A secret whose key is not in the set cannot be read, nor can its deliveries be signed;
 * it stays as it is, for the day that its key comes back.
 */
export const resealLoop = (deps: {
  keys: KeySet;
  store: Database;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
}): Loop => {
  const { clock, metrics } = deps;
  const waiting = metrics.gauge(
    'millrace_webhook_secrets_old_key',
    'Signing secrets that are sealed with another key than the first.',
    ['readable'],
  );
  return {
    name: 'reseal-secrets',
    run: repeatEvery(everyMs, clock, async (signal) => {
      const left = await resealAll(deps, signal);
      waiting.set(left.readable, { readable: 'true' });
      waiting.set(left.unreadable, { readable: 'false' });
    }),
  };
};

/** Endpoints that one line of the log names. */
const mostNamed = 5;

/** What is left with other keys afterwards; readable ones were replaced just then and are looked at again. */
async function resealAll(
  { keys, store, logger }: { keys: KeySet; store: Database; logger: Logger },
  signal: AbortSignal,
): Promise<{ readable: number; unreadable: number }> {
  let readable = 0;
  const unreadable: string[] = [];
  const { kid } = keys.signing;
  for (let after = ''; !signal.aborted;) {
    const page = await secretsOfOtherKeys(store, { kid, after, limit: perQuery });
    for (const secret of page) {
      const { endpointId, sealed } = secret;
      after = endpointId;
      try {
        const resealed = sealWebhookSecret(openWebhookSecret(sealed, endpointId, keys), endpointId, keys);
        if (!(await resealSecret(store, secret, resealed))) readable += 1;
      } catch (error) {
        if (!(error instanceof SealedSecretError)) throw error;
        unreadable.push(endpointId);
      }
    }
    if (page.length < perQuery) break;
  }
  if (unreadable.length > 0) {
    const some = unreadable.slice(0, mostNamed);
    logger.error(
      { count: unreadable.length, endpointIds: some },
      'signing secrets of endpoints cannot be read',
    );
  }
  return { readable, unreadable: unreadable.length };
}
