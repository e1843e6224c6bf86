import { type PlaybackTokenResource, type PreviewTokenResource, ProblemError } from '@millrace/contract';
import { isOriginOf, playbackTokenSeconds, previewTokenSeconds, signPlaybackToken } from '@millrace/domain';
import { type PlaybackGrant, readPlaybackGrant } from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';
import { domainNotVerified, normalizeHostname } from '../domains/hostname.ts';

type PlaybackHandlers = Pick<ApiHandlers, 'createPlaybackToken' | 'createPreviewToken'>;

export const playbackHandlers = (deps: FeatureDeps): PlaybackHandlers => ({
  createPlaybackToken: ({ project, params, body }) =>
    createPlaybackToken(deps, { projectId: project.id, videoId: params.videoId, ...body }),

  createPreviewToken: ({ project, params, headers }) =>
    createPreviewToken(deps, { projectId: project.id, videoId: params.videoId, origin: headers.origin }),
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
    throw domainNotVerified();
  }
  assertPlays(grant);
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

/**
 * A token for the dashboard alone: its domain is the dashboard host that asks, the first one when the request
 * names none of them (contract "Videos": never a caller's value).
 * @throws ProblemError `not_configured`, `not_found`, `plan_limit_reached`, `video_not_ready`
 */
async function createPreviewToken(
  { store, clock, config }: FeatureDeps,
  { projectId, videoId, origin }: { projectId: string; videoId: string; origin: string | undefined },
): Promise<PreviewTokenResource> {
  const hosts = config.DASHBOARD_HOSTS;
  const domain = hosts.find((host) => origin !== undefined && isOriginOf(origin, host)) ?? hosts[0];
  if (domain === undefined) throw new ProblemError('not_configured', { detail: 'There is no dashboard.' });
  const grant = await readPlaybackGrant(store, { projectId, videoId, hostname: null });
  if (!grant) throw new ProblemError('not_found');
  assertPlays(grant);
  const expiresAt = new Date(clock.now().getTime() + previewTokenSeconds * 1000);
  return {
    token: signPlaybackToken({ kind: 'preview', videoId, domain, expiresAt }, config.PLAYBACK_KEYS),
    expiresAt: expiresAt.toISOString(),
    embedUrl: `${config.CDN_URL}/e/${videoId}`,
  };
}

/** No token is made for what the CDN would refuse. */
function assertPlays({ status, overWatchLimit }: PlaybackGrant): void {
  if (overWatchLimit) {
    throw new ProblemError('plan_limit_reached', {
      detail: 'The watched minutes of this period are used up.',
    });
  }
  if (status !== 'ready') throw new ProblemError('video_not_ready', { detail: `The video is ${status}.` });
}
