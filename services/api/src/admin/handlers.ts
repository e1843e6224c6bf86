import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';
import { holdVideo, liftVideo, removeVideo, retryEncodeJob } from './team.ts';

type AdminHandlers = Pick<ApiHandlers, 'holdVideo' | 'liftVideo' | 'removeVideo' | 'retryEncodeJob'>;

export const adminHandlers = ({ store }: FeatureDeps): AdminHandlers => ({
  holdVideo: ({ caller: { actor }, params: { videoId }, body }) =>
    holdVideo(store, { videoId, reason: body.reason ?? null, legal: body.legal, actor }),

  liftVideo: ({ caller: { actor }, params: { videoId } }) => liftVideo(store, { videoId, actor }),

  removeVideo: async ({ caller: { actor }, params: { videoId }, query }) => {
    await removeVideo(store, { videoId, reason: query.reason ?? null, legal: query.legal, actor });
    return undefined;
  },

  retryEncodeJob: ({ caller: { actor }, params: { jobId } }) => retryEncodeJob(store, { jobId, actor }),
});
