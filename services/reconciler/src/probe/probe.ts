import { signPlaybackToken } from '@millrace/domain';
import { type Clock, type Logger, type Metrics } from '@millrace/platform';
import { type ReconcileLoop } from '../loops/loop.ts';
import { type Probe } from './settings.ts';

const everyMs = 30_000;
/** One request in all, in milliseconds. */
const requestMs = 10_000;
const tokenMs = 300_000;

type Canary = keyof Probe['canaries'];
const canaries: readonly Canary[] = ['playing', 'held'];

/** What a canary must be found to do. */
const expected: Record<Canary, string> = { playing: 'plays', held: '403 video_unavailable' };

/**
 * A synthetic viewer: plays one video that must play and one that is held, through the public CDN, as a player would.
 * Its views are not counted as watched time.
 */
export function probeLoop(
  probe: Probe,
  { clock, logger, metrics }: { clock: Clock; logger: Logger; metrics: Metrics },
): ReconcileLoop {
  const probes = metrics.counter(
    'millrace_probe_total',
    'Tries of the synthetic viewer: as it must be (ok), otherwise (wrong), or without an answer (failed).',
    ['canary', 'outcome'],
  );
  const well = metrics.gauge('millrace_probe_ok', 'Whether the last try found what it must.', ['canary']);
  const seconds = metrics.histogram(
    'millrace_probe_seconds',
    'From asking for the master playlist to what was found.',
    [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    ['canary'],
  );
  for (const canary of canaries) {
    for (const outcome of ['ok', 'wrong', 'failed']) probes.inc({ canary, outcome }, 0);
  }

  const look = async (canary: Canary): Promise<void> => {
    const startedAt = clock.now().getTime();
    const found = await play(probe, { videoId: probe.canaries[canary], now: clock.now() }).catch(
      (error: unknown) => {
        logger.warn({ err: error, canary }, 'the synthetic viewer got no answer');
        return null;
      },
    );
    seconds.observe((clock.now().getTime() - startedAt) / 1_000, { canary });
    const outcome = found === null ? 'failed' : found === expected[canary] ? 'ok' : 'wrong';
    probes.inc({ canary, outcome });
    well.set(outcome === 'ok' ? 1 : 0, { canary });
    if (outcome === 'wrong') logger.error({ canary, found }, 'the synthetic viewer found what must not be');
  };
  return {
    name: 'probe-playback',
    everyMs,
    run: async () => {
      await Promise.all(canaries.map(look));
      return 0;
    },
  };
}

/** Follows the first entry of each playlist down to bytes: `plays`, or the refusal that it met. */
async function play(
  { cdnUrl, domain, keys }: Probe,
  { videoId, now }: { videoId: string; now: Date },
): Promise<string> {
  const expiresAt = new Date(now.getTime() + tokenMs);
  const token = signPlaybackToken({ kind: 'preview', videoId, domain, expiresAt }, keys);
  let url = new URL(`${cdnUrl}/v/${videoId}/master.m3u8?token=${token}`);
  for (;;) {
    const response = await fetch(url, {
      ...{ headers: { Origin: `https://${domain}` }, redirect: 'manual' },
      signal: AbortSignal.timeout(requestMs),
    });
    const body = Buffer.from(await response.arrayBuffer());
    if (response.status !== 200)
      return `${response.status} ${response.headers.get('x-svc-error') ?? ''}`.trim();
    if (!url.pathname.endsWith('.m3u8')) return body.length > 0 ? 'plays' : 'an empty segment';
    const entry = body
      .toString('utf8')
      .split('\n')
      .find((line) => line.trim() !== '' && !line.startsWith('#'));
    if (entry === undefined) return 'an empty playlist';
    url = new URL(entry.trim(), url);
  }
}
