import Hls, { type ErrorData, type Level, type LoadPolicy, type MediaPlaylist } from 'hls.js';
import { withToken } from './addresses.ts';
import { type Choices, type Engine, type EngineEvents, type Track } from './engine.ts';
import { type TokenKeeper } from './token-keeper.ts';

/** A file is asked for again this often, of each quality. */
const maximumRepeats = 3;
/** Requests that a token ran out under are made again with the next one. */
const maximumTokenRepeats = 2;
/** Holes that are jumped over before the video is given up. */
const maximumSkips = 3;
/** Seconds that are fetched ahead, however little they weigh: what is fetched counts as watched. */
const ahead = 30;
/** Seconds behind that stay, for a short way back. */
const behind = 60;
/** Seconds before a hole at which what is buffered counts as played to its end. */
const holeEdge = 0.5;

export const canUseHls = (): boolean => Hls.isSupported();

/** hls.js, with the keeper's token on each request. */
export function createHlsEngine(
  video: HTMLVideoElement,
  master: string,
  keeper: TokenKeeper,
  events: EngineEvents,
): Engine {
  const hls = new Hls({
    // CMAF needs no remuxing to speak of, and a worker would need a policy that lets blobs run.
    enableWorker: false,
    // Media is fetched from the first play on: what nobody watches is not to count as watched.
    autoStartLoad: false,
    capLevelToPlayerSize: true,
    maxBufferLength: ahead,
    maxMaxBufferLength: ahead,
    backBufferLength: behind,
    fragLoadPolicy: policy(20_000, keeper),
    playlistLoadPolicy: policy(10_000, keeper),
    manifestLoadPolicy: policy(10_000, keeper),
    xhrSetup: async (xhr, url) => {
      xhr.addEventListener('readystatechange', () => {
        const told = xhr.readyState === xhr.HEADERS_RECEIVED && xhr.status === 403;
        if (told && xhr.getResponseHeader('X-Svc-Error') === 'token_expired') void keeper.renew();
      });
      xhr.open('GET', withToken(url, await keeper.usable()), true);
    },
  });
  const holes = createHoles(video, hls);
  let wanted = false;
  let reloads = 0;
  /** Where to begin, in seconds, until the element knows. */
  let place = 0;

  const choices = (): Choices => ({
    qualities: hls.levels.map(qualityName),
    audio: hls.audioTracks.map(trackOf),
    captions: hls.subtitleTracks.map(trackOf),
  });
  const tellChoices = (): void => events.onChoices(choices());
  hls.on(Hls.Events.MANIFEST_PARSED, () => {
    tellChoices();
    if (wanted) hls.startLoad(place);
  });
  hls.on(Hls.Events.AUDIO_TRACKS_UPDATED, tellChoices);
  hls.on(Hls.Events.SUBTITLE_TRACKS_UPDATED, tellChoices);
  hls.on(Hls.Events.LEVEL_SWITCHED, (_event, { level }) => events.onQuality(level));
  hls.on(Hls.Events.ERROR, (_event, data) => {
    if (data.fatal && isMissingFragment(data) && holes.skip(data)) return;
    const kind =
      data.type === Hls.ErrorTypes.NETWORK_ERROR
        ? 'network'
        : data.details === Hls.ErrorDetails.MANIFEST_INCOMPATIBLE_CODECS_ERROR
          ? 'unsupported'
          : 'media';
    events.onTrouble({ kind, fatal: data.fatal, status: data.response?.code ?? 0, code: codeOf(data) });
  });
  hls.attachMedia(video);

  return {
    load: () => hls.loadSource(master),
    start() {
      wanted = true;
      const known = video.readyState >= video.HAVE_METADATA;
      if (hls.levels.length > 0) hls.startLoad(known ? video.currentTime : place);
      else hls.loadSource(master);
    },
    stop: () => hls.stopLoad(),
    reload() {
      const playing = !video.paused;
      place = video.currentTime;
      hls.once(Hls.Events.MANIFEST_PARSED, () => {
        // The element was emptied, which pauses it. A browser that wants a click now shows the play button.
        if (playing) void video.play().catch(() => undefined);
      });
      // Another address, since the browser keeps the old master for 30 s.
      hls.loadSource(`${master}?reload=${++reloads}`);
    },
    recover: () => hls.recoverMediaError(),
    setQuality(position) {
      hls.nextLevel = position ?? -1;
    },
    setAudio(position) {
      hls.audioTrack = position;
    },
    setCaptions(position) {
      hls.subtitleDisplay = position !== null;
      hls.subtitleTrack = position ?? -1;
    },
    // Each request asks for the token: nothing is to be done, and so nothing is seen of it.
    tokenRenewed: () => undefined,
  };
}

/** How often and how patiently hls.js asks again. A 4xx is final, but for a token that was just renewed. */
function policy(loadMs: number, keeper: TokenKeeper): LoadPolicy {
  const retry = { maxNumRetry: maximumRepeats, retryDelayMs: 1_000, maxRetryDelayMs: 8_000 };
  return {
    default: {
      maxTimeToFirstByteMs: 10_000,
      maxLoadTimeMs: loadMs,
      timeoutRetry: retry,
      errorRetry: {
        ...retry,
        shouldRetry: (_config, count, _timeout, answer) => {
          const status = answer?.code ?? 0;
          if (status === 403) return keeper.renewing && count < maximumTokenRepeats;
          return count < maximumRepeats && (status === 0 || status >= 500);
        },
      },
    },
  };
}

const isMissingFragment = (data: ErrorData): boolean =>
  data.details === Hls.ErrorDetails.FRAG_LOAD_ERROR && data.response?.code === 404;

interface Holes {
  /** Plans a jump over the fragment that is not there; false when there have been too many. */
  skip(data: ErrorData): boolean;
}

/** Plays what is buffered before a missing fragment, then goes on behind it. */
function createHoles(video: HTMLVideoElement, hls: Hls): Holes {
  const skipped = new Set<number>();
  return {
    skip(data) {
      const { frag } = data;
      if (frag === undefined || skipped.size >= maximumSkips || skipped.has(frag.start)) return false;
      skipped.add(frag.start);
      const buffered = video.buffered;
      const held = (at: number): boolean => {
        for (let i = 0; i < buffered.length; i++)
          if (buffered.start(i) <= at && at < buffered.end(i)) return true;
        return false;
      };
      const jump = (): void => {
        const before = video.currentTime < frag.start - holeEdge && held(video.currentTime + holeEdge);
        if (before || video.seeking) return;
        for (const event of watched) video.removeEventListener(event, jump);
        const end = frag.start + frag.duration;
        // The viewer may have gone elsewhere meanwhile.
        if (video.currentTime > frag.start - 2 * holeEdge - frag.duration && video.currentTime < end) {
          video.currentTime = end + 0.05;
        }
        hls.startLoad(video.currentTime);
      };
      const watched = ['timeupdate', 'waiting', 'seeked'] as const;
      for (const event of watched) video.addEventListener(event, jump);
      jump();
      return true;
    },
  };
}

function codeOf({ networkDetails }: ErrorData): string | null {
  const xhr = networkDetails as unknown;
  return xhr instanceof XMLHttpRequest && xhr.readyState >= xhr.HEADERS_RECEIVED
    ? xhr.getResponseHeader('X-Svc-Error')
    : null;
}

/** The path names the quality; a picture that is no 16:9 has another height. */
const qualityName = ({ uri, height }: Level): string =>
  /\/(\d+p)\/index\.m3u8/.exec(uri)?.[1] ?? `${height}p`;

const trackOf = ({ name, lang }: MediaPlaylist): Track => ({ label: name, language: lang ?? null });
