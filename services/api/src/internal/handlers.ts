import { ProblemError } from '@millrace/contract';
import { readPlaybackState } from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';

export const internalHandlers = ({ store }: FeatureDeps): Pick<ApiHandlers, 'getPlaybackState'> => ({
  getPlaybackState: async ({ params }) => {
    const state = await readPlaybackState(store, params.videoId);
    if (!state) throw new ProblemError('not_found');
    return state;
  },
});
