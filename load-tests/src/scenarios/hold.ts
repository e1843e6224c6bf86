import { codeOf, createTeam } from '../api.ts';
import { parseMedia, parseMultivariant } from '../hls.ts';
import { bounds } from '../objectives.ts';
import { type Scenario } from '../scenario.ts';
import { openSession, type Session } from '../session.ts';
import { type World } from '../world.ts';

/** Connections that ask at once: behind one address there may be many CDN processes. */
const askersAtOnce = 4;
const pauseMs = 250;
/** When it is no use to wait any longer. */
const patienceMs = 2 * bounds.holdMs;

/**
 * The team holds a video while it is played with tokens from before, until nothing of it plays any more, and lifts
 * the hold again.
 */
export const hold: Scenario = async (world, { held }) => {
  if (held === null) throw new Error('there is no video to hold');
  const { clock, meter } = world;
  const team = createTeam(world);
  const session = await openSession(world, held);
  const urls = await playableOf(session);
  for (const url of urls) await session.require(url, 'segment');
  try {
    await team.hold(held);
    const placedAt = clock.now();
    const lastPlayedAt = await untilSilent(world, session, { urls, placedAt });
    const tookMs = lastPlayedAt - placedAt;
    meter.event('hold_in_time', tookMs <= bounds.holdMs);
    meter.took('hold', tookMs);
  } finally {
    await team.lift(held);
  }
  await untilPlaying(world, session, urls[0] ?? '');
};

/** The playlist and a segment, which a CDN may answer from different memories. */
async function playableOf(session: Session): Promise<string[]> {
  const { playlistUrl } = session;
  const { variants } = parseMultivariant(
    (await session.require(playlistUrl, 'multivariant playlist')).text,
    playlistUrl,
  );
  const url = variants[0]?.url ?? '';
  const { segments } = parseMedia((await session.require(url, 'media playlist')).text, url);
  return [playlistUrl, segments[0]?.url ?? ''];
}

/** Asks until nothing has played for a while, or patience ends; returns when something played last. */
async function untilSilent(
  world: World,
  session: Session,
  { urls, placedAt }: { urls: readonly string[]; placedAt: number },
): Promise<number> {
  const { clock, meter, settings } = world;
  let lastPlayedAt = placedAt;
  let silentSince = placedAt;
  const ask = async (url: string): Promise<void> => {
    const askedAt = clock.now();
    const answer = await session.get(url, 'segment');
    if (answer.status === 200) {
      // When it was asked for, not when the last byte came: what had begun may end.
      lastPlayedAt = Math.max(lastPlayedAt, askedAt);
      silentSince = clock.now();
    } else {
      const code = answer.header('x-svc-error') ?? codeOf(answer.text);
      meter.event('hold_refused', answer.status === 403 && code === 'video_unavailable', { code });
    }
  };
  const isSilent = (): boolean => clock.now() - silentSince >= settings.quietMs;
  while (!isSilent() && clock.now() - placedAt < patienceMs) {
    const askers = Array.from({ length: askersAtOnce }, (_, i) => urls[i % urls.length] ?? '');
    await Promise.all(askers.map(ask));
    await clock.sleep(pauseMs);
  }
  return lastPlayedAt;
}

/** @throws Error when it does not play again for a long time */
async function untilPlaying({ clock, meter }: World, session: Session, url: string): Promise<void> {
  const liftedAt = clock.now();
  while ((await session.get(url, 'segment')).status !== 200) {
    if (clock.now() - liftedAt > patienceMs) throw new Error('a video does not play after its hold');
    await clock.sleep(pauseMs);
  }
  meter.took('lift', clock.now() - liftedAt);
}
