import { appendFile, copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type PlaybackTokenResource as PlaybackToken, type Video } from '@millrace/contract';
import { type Customer, signUp } from './customer.ts';
import { expectRefusal, forged, holdsWithin, refusedWithin, respelled, withToken } from './refusals.ts';
import { type Report } from './report.ts';
import { type Stack } from './stack.ts';
import { uploadFile } from './upload.ts';
import { verifyWalk } from './verify.ts';
import { createPlayer, type Player, walkVideo } from './walk.ts';

const sample = fileURLToPath(new URL('../../media/sample.mp4', import.meta.url));
/** Makes three parts of the sample: an ISO `free` box at the end, which every reader passes over. */
const paddingBytes = 36 * 1024 * 1024;
const encodeTimeoutMs = 20 * 60_000;
const shortestTokenSeconds = 60;

export interface DemoOptions {
  stack: Stack;
  report: Report;
  /** The file to upload; the sample unless told. */
  file?: string | undefined;
  signal: AbortSignal;
}

/** Does the main job once, through public addresses alone. @throws DemoFailure at the first thing that is wrong */
export async function runDemo({
  stack,
  report,
  file,
  signal,
}: DemoOptions): Promise<{ token: PlaybackToken }> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-demo-files-'));
  try {
    const source = join(folder, basename(file ?? sample));
    await copyFile(file ?? sample, source);
    if (file === undefined) await pad(source);
    const customer = await report.check(
      'sign up and verify a domain',
      () => signUp(stack, 'agency'),
      ({ domain }) => domain,
    );
    const video = await uploadAndEncode(report, customer, source, signal);
    const shortLived = await grant(customer, video.id, shortestTokenSeconds);
    const token = await grant(customer, video.id);
    const player = createPlayer(`https://${customer.domain}`);
    const playlistUrl = atCdn(stack, token.playlistUrl ?? '');
    const walk = await report.check(
      'walk master, playlists, init and segments',
      () => walkVideo(player, playlistUrl, join(folder, 'walk')),
      (seen) =>
        `${seen.variants.length} variants, ${seen.audio.length} sound, ${(seen.bytes / 1e6).toFixed(1)} MB`,
    );
    const thumbnail = { ...token, thumbnailUrl: atCdn(stack, token.thumbnailUrl) };
    await verifyWalk(report, { source, video, walk, player, token: thumbnail });
    await checkRefusals({ stack, report, customer, video, player, playlistUrl, token });
    await checkExpiry(
      report,
      player,
      withToken(playlistUrl, shortLived.token),
      new Date(shortLived.expiresAt),
      signal,
    );
    return { token };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The address on the CDN that the demo was told to use. */
const atCdn = (stack: Stack, url: string): string => {
  const { pathname, search } = new URL(url);
  return new URL(pathname + search, stack.cdn).href;
};

async function pad(path: string): Promise<void> {
  const box = Buffer.alloc(paddingBytes);
  box.writeUInt32BE(paddingBytes, 0);
  box.write('free', 4, 'latin1');
  await appendFile(path, box);
}

async function uploadAndEncode(
  report: Report,
  customer: Customer,
  source: string,
  signal: AbortSignal,
): Promise<Video> {
  const { client, projectId } = customer;
  const uploaded = await report.check(
    'upload',
    () => uploadFile(customer, source, (share) => report.progress('upload', share)),
    ({ parts }) => `${parts} ${parts === 1 ? 'part' : 'parts'}`,
  );
  const startedAt = performance.now();
  return report.check(
    'encode',
    async () => {
      for (let share = 0; performance.now() - startedAt < encodeTimeoutMs; share += (1 - share) / 60) {
        signal.throwIfAborted();
        const video = await client.getVideo({ projectId, videoId: uploaded.video.id });
        if (video.status === 'ready') return video;
        if (video.status !== 'processing') {
          throw new Error(
            `the video is ${video.status}: ${video.failure?.code ?? ''} ${video.failure?.message ?? ''}`,
          );
        }
        report.progress('encode', share);
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
      throw new Error('the video is not ready after 20 minutes');
    },
    (video) =>
      `${video.durationSeconds ?? 0} s of video, ${video.qualities.join(' ')}, ready after ${((performance.now() - startedAt) / 1000).toFixed(1)} s`,
  );
}

const grant = (
  { client, projectId, domain }: Customer,
  videoId: string,
  expiresInSeconds?: number,
): Promise<PlaybackToken> =>
  client.createPlaybackToken({
    projectId,
    videoId,
    body: { domain, ...(expiresInSeconds === undefined ? {} : { expiresInSeconds }) },
  });

interface RefusalScene {
  stack: Stack;
  report: Report;
  customer: Customer;
  video: Video;
  player: Player;
  playlistUrl: string;
  token: PlaybackToken;
}

async function checkRefusals({
  stack,
  report,
  customer,
  video,
  player,
  playlistUrl,
  token,
}: RefusalScene): Promise<void> {
  const headers = { origin: player.origin };
  const refuse = (
    name: string,
    url: string,
    code: string,
    sent: Record<string, string> = headers,
  ): Promise<void> =>
    report.check(
      `refused: ${name}`,
      () => expectRefusal({ url, headers: sent, status: 403, code }),
      () => `403 ${code}`,
    );
  await refuse('no token', withToken(playlistUrl, null), 'token_missing');
  await refuse('forged token', withToken(playlistUrl, forged(token.token)), 'token_invalid');
  await refuse('re-spelled base64', withToken(playlistUrl, respelled(token.token)), 'token_invalid');
  await refuse('no origin', playlistUrl, 'origin_missing', {});
  await refuse('wrong origin', playlistUrl, 'domain_mismatch', { origin: 'https://elsewhere.example.com' });

  const above = atCdn(
    stack,
    `${new URL(playlistUrl).origin}/v/${video.id}/1080p/index.m3u8?token=${token.token}`,
  );
  await stack.millrace('account', 'plan', customer.accountId, 'free');
  await report.check(
    "refused: above the plan's quality",
    () => refusedWithin(60, { url: above, headers, status: 403, code: 'plan_limit_reached' }),
    (seconds) => `403 plan_limit_reached ${seconds.toFixed(1)} s after the downgrade`,
  );
  await stack.millrace('account', 'plan', customer.accountId, 'agency');

  await stack.millrace('video', 'hold', video.id, '--reason', 'demo');
  await report.check(
    'refused: held',
    () => refusedWithin(5, { url: playlistUrl, headers, status: 403, code: 'video_unavailable' }),
    (seconds) => `403 video_unavailable ${seconds.toFixed(1)} s after the hold`,
  );
  await stack.millrace('video', 'lift', video.id);
  await report.check(
    'plays again after the hold',
    () => holdsWithin(5, () => player.get(playlistUrl)),
    (seconds) => `${seconds.toFixed(1)} s after the lift`,
  );
}

/** A token cannot live for less than a minute, so this comes last. */
async function checkExpiry(
  report: Report,
  player: Player,
  url: string,
  expiresAt: Date,
  signal: AbortSignal,
): Promise<void> {
  const startedAt = Date.now();
  while (Date.now() < expiresAt.getTime()) {
    signal.throwIfAborted();
    report.progress('token expires', (Date.now() - startedAt) / (expiresAt.getTime() - startedAt));
    await new Promise((resolve) => setTimeout(resolve, Math.min(500, expiresAt.getTime() - Date.now())));
  }
  const refusal = { url, headers: { origin: player.origin }, status: 403, code: 'token_expired' };
  await report.check(
    'refused: expired',
    () => expectRefusal(refusal),
    () => '403 token_expired',
  );
}
