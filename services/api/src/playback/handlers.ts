import { type PlaybackTokenResource, ProblemError } from '@millrace/contract';
import { playbackTokenSeconds, signPlaybackToken } from '@millrace/domain';
import { readPlaybackGrant } from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';
import { normalizeHostname } from '../domains/hostname.ts';

type PlaybackHandlers = Pick<ApiHandlers, 'createPlaybackToken'>;

export const playbackHandlers = (deps: FeatureDeps): PlaybackHandlers => ({
  createPlaybackToken: ({ project, params, body }) =>
    createPlaybackToken(deps, { projectId: project.id, videoId: params.videoId, ...body }),
});

/** @throws ProblemError `not_found`, `domain_not_verified`, `plan_limit_reached`, `video_not_ready` */
async function createPlaybackToken(
  { store, clock, config }: FeatureDeps,
  input: { projectId: string; videoId: string; domain: string; expiresInSeconds?: number | undefined },
): Promise<PlaybackTokenResource> {
  const { projectId, videoId } = input;
  const domain = normalizeHostname(input.domain, 'domain');
  const grant = await readPlaybackGrant(store, { projectId, videoId, hostname: domain });
  if (!grant) throw new ProblemError('not_found');
  if (!grant.domainVerified) {
    throw new ProblemError('domain_not_verified', {
      errors: [{ path: 'domain', message: 'is not verified on this project' }],
    });
  }
  if (grant.overWatchLimit) {
    throw new ProblemError('plan_limit_reached', {
      detail: 'The watched minutes of this period are used up.',
    });
  }
  if (grant.status !== 'ready') {
    throw new ProblemError('video_not_ready', { detail: `The video is ${grant.status}.` });
  }
  const seconds = input.expiresInSeconds ?? playbackTokenSeconds(grant.durationMs ?? 0);
  const expiresAt = new Date(clock.now().getTime() + seconds * 1000);
  const token = signPlaybackToken({ kind: 'playback', videoId, domain, expiresAt }, config.PLAYBACK_KEYS);
  const at = (path: string): string => `${config.CDN_URL}/${path}?token=${token}`;
  return {
    token,
    expiresAt: expiresAt.toISOString(),
    embedUrl: at(`e/${videoId}`),
    thumbnailUrl: at(`v/${videoId}/poster.jpg`),
    ...(grant.whiteLabel ? { playlistUrl: at(`v/${videoId}/master.m3u8`) } : {}),
  };
}
