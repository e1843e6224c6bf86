import { appendFile, copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type PlaybackTokenResource as PlaybackToken, type Video } from '@millrace/contract';
import { type Customer, signUp } from './customer.ts';
import { type Shop } from './page.ts';
import { startReceiver } from './receiver.ts';
import { checkEmbedPage, checkExpiry, checkRefusals, withToken } from './refusals.ts';
import { type Report } from './report.ts';
import { type Stack } from './stack.ts';
import { uploadFile } from './upload.ts';
import { verifyWalk } from './verify.ts';
import { createPlayer, type Player, walkVideo } from './walk.ts';
import { checkDeliveryLog, checkForgeries, checkReadyEvent, subscribe, unsubscribe } from './webhooks.ts';

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

/**
 * Does the main job once, through public addresses alone.
 * @returns what a customer's page needs to show the video
 * @throws DemoFailure at the first thing that is wrong, the signal's reason when it was told to stop
 */
export async function runDemo({ stack, report, file, signal }: DemoOptions): Promise<Shop> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-demo-files-'));
  const receiver = await startReceiver();
  try {
    const source = file ?? (await paddedSample(folder));
    const customer = await report.check(
      'sign up and verify a domain',
      () => signUp(stack, 'agency', signal),
      ({ domain }) => domain,
    );
    const webhooks = await subscribe(report, customer, { receiver, signal });
    const video = await uploadAndEncode(report, customer, source, signal);
    const told = await checkReadyEvent(webhooks, { name: 'webhook: video.ready', videoId: video.id });
    await checkForgeries(webhooks, told);
    await checkDeliveryLog(webhooks, told);
    // The short-lived one first: it expires while other things are looked at.
    const [shortLived, token] = await report.check(
      'playback tokens',
      async () => [await grant(customer, video.id, shortestTokenSeconds), await grant(customer, video.id)],
      ([short]) => `one of them until ${short.expiresAt}`,
    );
    const player = createPlayer(`https://${customer.domain}`, signal);
    await checkPlayback({ stack, report, customer, video, player, token, source, folder, signal });
    await checkReadyEvent(webhooks, { name: 'webhook: video.ready again after the hold', videoId: video.id });
    await unsubscribe(webhooks);
    await checkExpiry(report, player, {
      url: withToken(atCdn(stack, token.playlistUrl ?? ''), shortLived.token),
      expiresAt: new Date(shortLived.expiresAt),
      signal,
    });
    return { token, domain: customer.domain, renew: () => grant(customer, video.id) };
  } finally {
    await receiver.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

export interface Playback {
  stack: Stack;
  report: Report;
  customer: Customer;
  video: Video;
  player: Player;
  token: PlaybackToken;
  /** What was uploaded. */
  source: string;
  /** Where files may be written. */
  folder: string;
  signal: AbortSignal;
}

/** Plays a video, compares it with its source, and sees refused what must be. @throws DemoFailure */
export async function checkPlayback(playback: Playback): Promise<void> {
  const { stack, report, player, token, folder } = playback;
  const playlistUrl = atCdn(stack, token.playlistUrl ?? '');
  const walk = await report.check(
    'walk master, playlists, init and segments',
    () => walkVideo(player, playlistUrl, join(folder, 'walk')),
    (seen) =>
      `${seen.variants.length} variants, ${seen.audio.length} sound, ${(seen.bytes / 1e6).toFixed(1)} MB`,
  );
  await verifyWalk(report, { ...playback, walk, thumbnailUrl: atCdn(stack, token.thumbnailUrl) });
  await checkEmbedPage(report, player, atCdn(stack, token.embedUrl));
  await checkRefusals({ ...playback, playlistUrl, token: token.token });
}

/** The address on the CDN that the demo was told to use. */
const atCdn = (stack: Stack, url: string): string => {
  if (!URL.canParse(url)) return stack.cdn;
  const { pathname, search } = new URL(url);
  return new URL(pathname + search, stack.cdn).href;
};

async function paddedSample(folder: string): Promise<string> {
  const path = join(folder, basename(sample));
  await copyFile(sample, path);
  const box = Buffer.alloc(paddingBytes);
  box.writeUInt32BE(paddingBytes, 0);
  box.write('free', 4, 'latin1');
  await appendFile(path, box);
  return path;
}

async function uploadAndEncode(
  report: Report,
  customer: Customer,
  source: string,
  signal: AbortSignal,
): Promise<Video> {
  const { video } = await report.check(
    'upload',
    () => uploadFile(customer, source, { signal, onProgress: (share) => report.progress('upload', share) }),
    ({ parts }) => `${parts} ${parts === 1 ? 'part' : 'parts'}`,
  );
  const startedAt = performance.now();
  const seconds = (): number => (performance.now() - startedAt) / 1000;
  return report.check(
    'encode',
    () => untilReady(customer, video.id, () => report.waiting('encode', seconds())),
    ({ durationSeconds, qualities }) =>
      `${durationSeconds ?? 0} s of video, ${qualities.join(' ')}, ready after ${seconds().toFixed(1)} s`,
  );
}

/** Waits until a video is ready. @throws Error when it fails, or takes too long */
export async function untilReady(
  { client, projectId }: Customer,
  videoId: string,
  onWait: () => void = () => undefined,
): Promise<Video> {
  const deadline = performance.now() + encodeTimeoutMs;
  while (performance.now() < deadline) {
    const video = await client.getVideo({ projectId, videoId });
    if (video.status === 'ready') return video;
    if (video.status !== 'processing') {
      const { code = '', message = '' } = video.failure ?? {};
      throw new Error(`the video is ${video.status}: ${code} ${message}`);
    }
    onWait();
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  throw new Error(`the video is not ready after ${encodeTimeoutMs / 60_000} minutes`);
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
