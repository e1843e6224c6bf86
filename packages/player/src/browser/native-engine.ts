import { withToken } from './addresses.ts';
import { type Engine, type EngineEvents } from './engine.ts';
import { type TokenKeeper } from './token-keeper.ts';

export const canPlayNatively = (video: HTMLVideoElement): boolean =>
  video.canPlayType('application/vnd.apple.mpegurl') !== '';

/**
 * The browser's own HLS, where there are no media source extensions. It chooses qualities by itself and puts no
 * new token on what it fetches, so that a renewed one means to read the playlists again.
 */
export function createNativeEngine(
  video: HTMLVideoElement,
  master: string,
  keeper: TokenKeeper,
  events: EngineEvents,
): Engine {
  let started = false;

  const open = (): void => {
    const { currentTime, paused } = video;
    video.src = withToken(master, keeper.token);
    if (!started) return;
    video.load();
    video.addEventListener('loadedmetadata', () => (video.currentTime = currentTime), { once: true });
    // A refusal to play shows as a paused player, which says it all.
    if (!paused) void video.play().catch(() => undefined);
  };
  const captions = (): TextTrack[] => [...video.textTracks].filter(({ kind }) => kind !== 'metadata');
  video.textTracks.addEventListener('addtrack', () => {
    const found = captions().map(({ label, language }) => ({ label, language: language || null }));
    events.onChoices({ qualities: [], audio: [], captions: found });
  });
  video.addEventListener('error', () => {
    // The browser does not say what the answer was: the caller asks the CDN.
    const unreachable = video.error?.code !== MediaError.MEDIA_ERR_DECODE;
    events.onTrouble({ kind: unreachable ? 'network' : 'media', fatal: true, status: 0, code: null });
  });

  return {
    load: open,
    start() {
      if (started && video.error !== null) open();
      started = true;
    },
    stop: () => video.pause(),
    reload: open,
    recover: open,
    setQuality: () => undefined,
    setAudio: () => undefined,
    setCaptions(position) {
      for (const [at, track] of captions().entries()) track.mode = at === position ? 'showing' : 'disabled';
    },
    tokenRenewed: open,
  };
}
