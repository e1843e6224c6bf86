import { type KeySet, openWebhookSecret } from '@millrace/domain';
import { type ClaimedDelivery } from '@millrace/store';

const most = 1_000;

/**
 * Opens signing secrets, and keeps some of those opened last by what the record holds: every claim reads that anew, so
 * that a rotated secret is another entry. Opening costs more than signing.
 */
export function createSecretOpener(
  keys: KeySet,
): (claim: Pick<ClaimedDelivery, 'secret' | 'endpointId'>) => string {
  const opened = new Map<string, string>();
  return ({ secret: sealed, endpointId }) => {
    const entry = `${endpointId} ${sealed}`;
    const known = opened.get(entry);
    if (known !== undefined) return known;
    const secret = openWebhookSecret(sealed, endpointId, keys);
    if (opened.size >= most) opened.clear();
    opened.set(entry, secret);
    return secret;
  };
}
