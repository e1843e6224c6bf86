import { accountResource, banAccount, eraseAccount, setPlan } from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';

export type AccountHandlers = Pick<
  ApiHandlers,
  'banAccount' | 'unbanAccount' | 'setAccountPlan' | 'eraseAccount'
>;

/** What the team does to an account; each act writes its audit row. */
export const accountHandlers = ({ store }: FeatureDeps): AccountHandlers => ({
  banAccount: async ({ caller: { actor }, params: { accountId }, body: { reason, holdVideos } }) => {
    const ban = { accountId, banned: true, holdVideos, actor, ...(reason === undefined ? {} : { reason }) };
    return accountResource(await store.transaction((tx) => banAccount(tx, ban)));
  },

  unbanAccount: async ({ caller: { actor }, params: { accountId } }) =>
    accountResource(await store.transaction((tx) => banAccount(tx, { accountId, banned: false, actor }))),

  eraseAccount: async ({ caller: { actor }, params: { accountId }, body: { name, reason = null } }) => {
    const { erasedAt, doneAt } = await store.transaction((tx) =>
      eraseAccount(tx, { accountId, name, reason, actor }),
    );
    return {
      ...{ accountId, erasedAt: erasedAt.toISOString(), doneAt: doneAt?.toISOString() ?? null },
    };
  },

  setAccountPlan: async ({ caller: { actor }, params: { accountId }, body: { planId, status } }) =>
    accountResource(
      await store.transaction((tx) => setPlan(tx, { accountId, planId, planStatus: status, actor })),
    ),
});
