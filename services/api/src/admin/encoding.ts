import { fieldProblem } from '@millrace/contract';
import { type EncodePauseScope, listEncodePauses, pauseEncoding, resumeEncoding } from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';

export type EncodingHandlers = Pick<ApiHandlers, 'getEncodePauses' | 'pauseEncoding' | 'resumeEncoding'>;
type Pauses = Awaited<ReturnType<EncodingHandlers['getEncodePauses']>>;

/** What the team holds back from being encoded. */
export const encodingHandlers = ({ store }: FeatureDeps): EncodingHandlers => {
  const pauses = async (): Promise<Pauses> => ({
    data: (await listEncodePauses(store)).map((row) => ({ ...row, pausedAt: row.pausedAt.toISOString() })),
  });
  return {
    getEncodePauses: pauses,
    pauseEncoding: async ({ caller: { actor }, body: { reason = null, ...what } }) => {
      const pause = scopeOf(what);
      await store.transaction((tx) => pauseEncoding(tx, { pause, reason, actor }));
      return pauses();
    },
    resumeEncoding: async ({ caller: { actor }, query }) => {
      const pause = scopeOf(query);
      await store.transaction((tx) => resumeEncoding(tx, { pause, actor }));
      return pauses();
    },
  };
};

/** @throws ProblemError `invalid_request` when both are named */
function scopeOf(what: {
  accountId?: string | undefined;
  class?: 'standard' | 'large' | undefined;
}): EncodePauseScope {
  if (what.accountId !== undefined && what.class !== undefined) {
    throw fieldProblem('invalid_request', 'accountId', 'cannot be named together with class');
  }
  if (what.accountId !== undefined) return { scope: 'account', accountId: what.accountId };
  return what.class === undefined ? { scope: 'all' } : { scope: 'class', class: what.class };
}
