import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from '@millrace/client';
import { Agent } from 'undici';
import { type Customer } from '../../../e2e/src/demo/customer.ts';
import { parseMaster, parseMedia } from '../../../e2e/src/demo/hls.ts';
import { createPlayer } from '../../../e2e/src/demo/walk.ts';
import { type PacedReport } from '../paced-load.ts';
import { type BenchCustomer, type BenchStack } from './bench-stack.ts';
import { clipsOf } from './clips.ts';
import { watchCpu } from './cpu-shares.ts';
import { nowMs } from './numbers.ts';
import { type PacedLoad, startLoad } from './start-load.ts';

export interface HoldsReport {
  /** Milliseconds from the start of the team's request until the CDN refused, and until it played again. */
  toRefusal: number[];
  toPlaying: number[];
  /** What viewers and API clients got meanwhile. */
  load: PacedReport;
  cpu: string;
}

export interface HoldsOptions {
  holds: number;
  /** Videos that are held and lifted at the same time, each again and again. */
  videos: number;
  /** At most, so that they meet all that the load does. */
  holdsPerSecond: number;
  /** Until connections are there and code is warm; nothing of it is told. */
  warmUpMs: number;
  viewersPerSecond: number;
  apiPerSecond: number;
  signal: AbortSignal;
}

interface Viewed {
  videoId: string;
  playlistUrl: string;
}

/** Beside those that are held, as many videos just play. */
const shareHeld = 0.5;
/** A state that takes longer has been lost. */
const lostMs = 60_000;

/** Holds videos one after the other, several at a time, while viewers watch them and others, and the API is used. */
export async function measureHolds(stack: BenchStack, options: HoldsOptions): Promise<HoldsReport> {
  const customer = await stack.customer();
  const videoIds = await clipsOf(stack, Math.ceil(options.videos / shareHeld));
  const videos = await Promise.all(videoIds.map((videoId) => view(customer, videoId)));
  const { admin, adminToken } = stack.running.ready();
  const team = createClient({ baseUrl: admin, bearer: adminToken });
  const load = await startLoadOf(stack, options, { customer, videos });
  const probes = new Agent({ pipelining: 1 });
  const report: HoldsReport = { toRefusal: [], toPlaying: [], load: {}, cpu: '' };
  try {
    await pause(options.warmUpMs, undefined, options);
    await load.underWay();
    const endWatch = await watchCpu(stack.running.ready().pids);
    const startedAt = nowMs();
    let next = 0;
    const work = async (video: Viewed): Promise<void> => {
      const probe = prober(probes, video, customer.domain);
      while (next < options.holds) {
        const dueAt = startedAt + (1_000 * next++) / options.holdsPerSecond;
        await pause(Math.max(0, dueAt - nowMs()), undefined, options);
        const heldAt = nowMs();
        await team.holdVideo({ videoId: video.videoId, body: { reason: 'bench' } });
        report.toRefusal.push(await probe('video_unavailable', heldAt));
        const liftedAt = nowMs();
        await team.liftVideo({ videoId: video.videoId });
        report.toPlaying.push(await probe('plays', liftedAt));
      }
    };
    await Promise.all(videos.slice(0, options.videos).map(work));
    report.cpu = await endWatch();
    report.load = await load.report();
    return report;
  } finally {
    await load.stop();
    await probes.close();
  }
}

async function view({ client, projectId, domain }: Customer, videoId: string): Promise<Viewed> {
  const { playlistUrl = '' } = await client.createPlaybackToken({ projectId, videoId, body: { domain } });
  return { videoId, playlistUrl };
}

type Answer = 'plays' | 'video_unavailable';

/** Asks the CDN again and again; resolves with how many milliseconds after `since` it said what is wanted. */
function prober(
  probes: Agent,
  { playlistUrl }: Viewed,
  domain: string,
): (wanted: Answer, since: number) => Promise<number> {
  const { origin, pathname, search } = new URL(playlistUrl);
  const ask = async (): Promise<Answer> => {
    const { statusCode, headers, body } = await probes.request({
      ...{ origin, path: pathname + search, method: 'GET', headers: { origin: `https://${domain}` } },
    });
    await body.dump({ limit: Infinity });
    if (statusCode === 200) return 'plays';
    const code = headers['x-svc-error'];
    if (statusCode === 403 && code === 'video_unavailable') return code;
    throw new Error(`the CDN answered ${statusCode} ${String(code)}`);
  };
  return async (wanted, since) => {
    while ((await ask()) !== wanted) {
      if (nowMs() - since > lostMs) throw new Error(`the CDN has not heard of a change for ${lostMs} ms`);
    }
    return nowMs() - since;
  };
}

async function startLoadOf(
  { running }: BenchStack,
  { viewersPerSecond, apiPerSecond }: HoldsOptions,
  { customer, videos }: { customer: BenchCustomer; videos: readonly Viewed[] },
): Promise<PacedLoad> {
  const origin = `https://${customer.domain}`;
  const urls = (await Promise.all(videos.map((video) => addressesOf(video, origin)))).flat();
  return startLoad({
    viewers: { perSecond: viewersPerSecond, targets: urls.map((url) => ({ url, headers: { origin } })) },
    api: {
      perSecond: apiPerSecond,
      targets: videos.map(({ videoId }) => ({
        url: `${running.ready().api}/v1/projects/${customer.projectId}/videos/${videoId}`,
        headers: { authorization: `Bearer ${customer.key}` },
      })),
    },
  });
}

/** What a player asks for on its way through a video. */
async function addressesOf({ playlistUrl }: Viewed, origin: string): Promise<string[]> {
  const player = createPlayer(origin);
  const read = async (url: string): Promise<string> => (await player.get(url)).toString('utf8');
  const { variants, audio } = parseMaster(await read(playlistUrl));
  const playlists = [...variants.map(({ uri }) => uri), ...audio].map(
    (uri) => new URL(uri, playlistUrl).href,
  );
  const files = playlists.map(async (playlist) => {
    const { init, segments } = parseMedia(await read(playlist));
    return [init, ...segments.map(({ uri }) => uri)].map((uri) => new URL(uri, playlist).href);
  });
  return [playlistUrl, ...playlists, ...(await Promise.all(files)).flat()];
}
