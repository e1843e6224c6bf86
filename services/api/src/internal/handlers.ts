import { ProblemError } from '@millrace/contract';
import { noteCdnProcess, readPlaybackState } from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';

export const internalHandlers = ({
  store,
}: FeatureDeps): Pick<ApiHandlers, 'getPlaybackState' | 'noteCdnProcess'> => ({
  getPlaybackState: async ({ params }) => {
    const state = await readPlaybackState(store, params.videoId);
    if (!state) throw new ProblemError('not_found');
    return state;
  },
  noteCdnProcess: async ({ params, body }) => {
    await noteCdnProcess(store, { bootId: params.bootId, cutOff: body.cutOff });
    return { cutOff: body.cutOff };
  },
});
