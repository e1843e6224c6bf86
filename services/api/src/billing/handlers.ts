import { ProblemError } from '@millrace/contract';
import {
  accountUsage,
  isOrdered,
  joinWhitelist,
  keepBillingEvent,
  listPaidPlans,
  listWhitelist,
} from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';
import { readBillingEvent } from './callback.ts';

type BillingHandlers = Pick<
  ApiHandlers,
  'getBillingPlan' | 'listBillingPlans' | 'joinWhitelist' | 'listWhitelist' | 'checkout' | 'billingCallback'
>;

export const billingHandlers = ({ store, config, logger }: FeatureDeps): BillingHandlers => ({
  getBillingPlan: ({ caller }) => store.transaction((tx) => accountUsage(tx, caller.accountId)),

  listBillingPlans: async () => ({ data: await listPaidPlans(store) }),

  joinWhitelist: async ({ caller: { accountId }, body: { planId, email } }) => ({
    data: await joinWhitelist(store, { accountId, planId, email }),
  }),

  listWhitelist: async ({ caller }) => ({ data: await listWhitelist(store, caller.accountId) }),

  checkout: () => Promise.reject(new ProblemError('billing_paused')),

  billingCallback: async ({ params: { provider }, raw, headers }) => {
    const secret = config.BILLING_CALLBACK_SECRETS.get(provider);
    const { id: eventId, payment } = readBillingEvent(raw, headers, secret);
    if (payment !== undefined && !(await isOrdered(store, payment))) {
      logger.warn({ provider, eventId, ...payment }, 'payment does not match its order');
      throw new ProblemError('billing_mismatch');
    }
    const isNew = await keepBillingEvent(store, { provider, eventId, body: raw });
    logger.info({ provider, eventId, isNew }, 'billing event received');
    return { received: true };
  },
});
