import { type MediaPlaylist, parseMedia, parseMultivariant } from './hls.ts';
import { openSession, type Session } from './session.ts';
import { type World } from './world.ts';

/**
 * Watches a video for as long as the settings say, as a player does: the multivariant playlist, the media playlists
 * of one quality and the sound, then segments until enough is loaded ahead, and further ones at the speed at which it
 * plays. On the way it switches quality and seeks. At the end of the video it starts again somewhere.
 * @throws Error when something of the video was not there
 */
export async function watch(world: World, videoId: string): Promise<void> {
  const { clock, meter, settings } = world;
  const { watchMs, bufferMs, switchEvery, seekEvery } = settings.viewing;
  const session = await openSession(world, videoId);
  const tracks = await openTracks(session);
  const playhead = createPlayhead(world);
  const happens = (every: number): boolean => every > 0 && world.random() < 1 / every;
  const leaveAt = clock.now() + watchMs;
  const pause = async (ms: number): Promise<void> => {
    const leftMs = Math.min(ms, leaveAt - clock.now());
    if (leftMs > 0) await clock.sleep(leftMs);
  };
  let index = 0;
  while (clock.now() < leaveAt) {
    const ms = await tracks.loadSegment(index);
    playhead.arrived(ms);
    index += 1;
    if (happens(switchEvery) && (await tracks.switchQuality(world.random()))) {
      meter.happened('quality_switches');
    }
    const isOver = index >= tracks.length();
    // Who has seen it to its end starts again; who seeks throws away what was loaded ahead.
    if (isOver) await pause(playhead.aheadMs());
    if (isOver || happens(seekEvery)) {
      meter.happened('seeks');
      index = Math.floor(world.random() * tracks.length());
      playhead.flush();
    }
    await pause(playhead.aheadMs() - bufferMs);
  }
}

interface Tracks {
  /** Loads a segment of the picture and the sound to it; returns how long it plays. */
  loadSegment(index: number): Promise<number>;
  /** One step up or down, as there is; false when there is one quality only. */
  switchQuality(random: number): Promise<boolean>;
  length(): number;
}

/** Starts with the least bandwidth, as players do that know nothing of their connection yet. */
async function openTracks(session: Session): Promise<Tracks> {
  const { playlistUrl } = session;
  const { text } = await session.require(playlistUrl, 'multivariant playlist');
  const { variants, audioUrl } = parseMultivariant(text, playlistUrl);
  const opened: Record<string, MediaPlaylist> = {};
  const open = async (url: string): Promise<MediaPlaylist> => {
    const known = opened[url];
    if (known) return known;
    const media = parseMedia((await session.require(url, 'media playlist')).text, url);
    if (media.initUrl !== null) await session.require(media.initUrl, 'init segment');
    opened[url] = media;
    return media;
  };
  const openVariant = (at: number): Promise<MediaPlaylist> => open(variants[at]?.url ?? '');
  let quality = 0;
  const [first, sound] = await Promise.all([openVariant(0), audioUrl === null ? null : open(audioUrl)]);
  let picture = first;
  return {
    length: () => picture.segments.length,
    loadSegment: async (index) => {
      const [segment, beside] = [picture.segments[index], sound?.segments[index]];
      if (segment === undefined) throw new Error(`there is no segment ${index}`);
      const urls = [segment.url, ...(beside === undefined ? [] : [beside.url])];
      await Promise.all(urls.map((url) => session.require(url, 'segment')));
      return segment.ms;
    },
    switchQuality: async (random) => {
      const others = [quality - 1, quality + 1].filter((at) => at in variants);
      const next = others[Math.floor(random * others.length)];
      if (next === undefined) return false;
      quality = next;
      picture = await openVariant(next);
      return true;
    },
  };
}

interface Playhead {
  /** A segment of this length is there. */
  arrived(ms: number): void;
  flush(): void;
  /** How long the player can go on with what it has. */
  aheadMs(): number;
}

/** Measures whether there is always something to play. The wait for the first segment and after a seek is no stall. */
function createPlayhead({ clock, meter }: World): Playhead {
  const openedAt = clock.now();
  /** When there will be nothing left to play; null while there is nothing yet. */
  let emptyAt: number | null = null;
  let hasPlayed = false;
  return {
    arrived: (ms) => {
      const now = clock.now();
      if (!hasPlayed) meter.took('first_segment', now - openedAt);
      hasPlayed = true;
      if (emptyAt !== null) {
        meter.event('playback_smooth', now <= emptyAt);
        if (now > emptyAt) meter.took('stall', now - emptyAt);
      }
      emptyAt = Math.max(emptyAt ?? now, now) + ms;
    },
    flush: () => (emptyAt = null),
    aheadMs: () => (emptyAt === null ? 0 : emptyAt - clock.now()),
  };
}
