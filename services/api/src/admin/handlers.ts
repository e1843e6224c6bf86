import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';
import { type AccountHandlers, accountHandlers } from './accounts.ts';
import { type BanHandlers, banHandlers } from './bans.ts';
import { type EncodingHandlers, encodingHandlers } from './encoding.ts';
import { type ListHandlers, listHandlers } from './lists.ts';
import { holdVideo, liftVideo, removeVideo, retryEncodeJob } from './team.ts';

type AdminHandlers = Pick<ApiHandlers, 'holdVideo' | 'liftVideo' | 'removeVideo' | 'retryEncodeJob'> &
  AccountHandlers &
  BanHandlers &
  EncodingHandlers &
  ListHandlers;

export const adminHandlers = (deps: FeatureDeps): AdminHandlers => ({
  ...videoHandlers(deps),
  ...accountHandlers(deps),
  ...banHandlers(deps),
  ...encodingHandlers(deps),
  ...listHandlers(deps),
});

const videoHandlers = ({
  store,
}: FeatureDeps): Pick<ApiHandlers, 'holdVideo' | 'liftVideo' | 'removeVideo' | 'retryEncodeJob'> => ({
  holdVideo: ({ caller: { actor }, params: { videoId }, body }) =>
    holdVideo(store, { videoId, reason: body.reason ?? null, legal: body.legal, actor }),

  liftVideo: ({ caller: { actor }, params: { videoId } }) => liftVideo(store, { videoId, actor }),

  removeVideo: async ({ caller: { actor }, params: { videoId }, query }) => {
    await removeVideo(store, { videoId, reason: query.reason ?? null, legal: query.legal, actor });
    return undefined;
  },

  retryEncodeJob: ({ caller: { actor }, params: { jobId } }) => retryEncodeJob(store, { jobId, actor }),
});
