import { type KeyObject } from 'node:crypto';
import { type KeySet, openWebhookSecret, webhookKey } from '@millrace/domain';
import { createKeep } from '@millrace/platform';
import { type ClaimedDelivery } from '@millrace/store';

const most = 10_000;

/**
 * Opens signing secrets, and keeps the keys of some opened last by what the record holds: every claim reads that anew, so
 * that a rotated secret is another entry. Opening costs more than signing.
 */
export function createKeyOpener(
  keys: KeySet,
): (claim: Pick<ClaimedDelivery, 'secret' | 'endpointId'>) => KeyObject {
  const keep = createKeep<KeyObject>(most);
  return ({ secret: sealed, endpointId }) =>
    keep(`${endpointId} ${sealed}`, () => webhookKey(openWebhookSecret(sealed, endpointId, keys)));
}
