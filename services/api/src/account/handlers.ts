import { accountResource, findAccount, findUser, userResource } from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';

export const accountHandlers = ({ store }: FeatureDeps): Pick<ApiHandlers, 'getMe'> => ({
  getMe: async ({ caller: { userId, accountId } }) => {
    const [user, account] = await Promise.all([findUser(store, userId), findAccount(store, accountId)]);
    if (user === null || account === null) throw new Error(`the holder of a session is gone: ${userId}`);
    return { user: userResource(user), account: accountResource(account) };
  },
});
