import { type KeyObject } from 'node:crypto';
import { type KeySet, openWebhookSecret, webhookKey } from '@millrace/domain';
import { type ClaimedDelivery } from '@millrace/store';

const most = 10_000;

/**
 * Opens signing secrets, and keeps the keys of some opened last by what the record holds: every claim reads that anew, so
 * that a rotated secret is another entry. Opening costs more than signing.
 */
export function createKeyOpener(
  keys: KeySet,
): (claim: Pick<ClaimedDelivery, 'secret' | 'endpointId'>) => KeyObject {
  const opened = new Map<string, KeyObject>();
  return ({ secret: sealed, endpointId }) => {
    const entry = `${endpointId} ${sealed}`;
    const known = opened.get(entry);
    if (known !== undefined) return known;
    const key = webhookKey(openWebhookSecret(sealed, endpointId, keys));
    if (opened.size >= most) opened.clear();
    opened.set(entry, key);
    return key;
  };
}
