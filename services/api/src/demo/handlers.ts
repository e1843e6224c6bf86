import { ProblemError } from '@millrace/contract';
import { demoTokenSeconds, signPlaybackToken } from '@millrace/domain';
import { findAnyVideo } from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';

export const demoHandlers = ({
  config,
  store,
  clock,
}: FeatureDeps): Pick<ApiHandlers, 'getDemoPlayback'> => ({
  getDemoPlayback: async () => {
    const { DEMO_VIDEO_ID: videoId, DEMO_DOMAIN: domain } = config;
    if (videoId === undefined || domain === undefined) throw new ProblemError('not_configured');
    const video = await findAnyVideo(store, videoId);
    if (video === null || video.deletedAt !== null || video.status !== 'ready') {
      throw new ProblemError('not_configured', { detail: 'The demo video does not play right now.' });
    }
    const expiresAt = new Date(clock.now().getTime() + demoTokenSeconds * 1000);
    const token = signPlaybackToken({ kind: 'demo', videoId, domain, expiresAt }, config.PLAYBACK_KEYS);
    return { cdnUrl: config.CDN_URL, videoId, token, expiresAt: expiresAt.toISOString() };
  },
});
