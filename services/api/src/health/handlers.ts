import { ProblemError } from '@millrace/contract';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';

export const healthHandlers = ({ store }: FeatureDeps): Pick<ApiHandlers, 'getHealth'> => ({
  getHealth: async () => {
    await store.query('select 1').catch((error: unknown) => {
      throw new ProblemError('service_unavailable', { retryAfter: 1, cause: error });
    });
    return { status: 'ok' };
  },
});
