import { type Bus } from '@millrace/bus';
import { createRequestIds } from '@millrace/domain';
import { type ObjectStore } from '@millrace/objects';
import {
  type Clock,
  createHttpServer,
  type Health,
  type HttpServer,
  type Logger,
  type Metrics,
  type Service,
  superviseLoops,
} from '@millrace/platform';
import { loadPlayer } from '@millrace/player';
import { type CdnConfig } from './config.ts';
import { createBlocks } from './delivery/blocks.ts';
import { createDeliveries } from './delivery/deliveries.ts';
import { createEmbed } from './embed/embed.ts';
import { SendBudget } from './http/exchange.ts';
import { createListener } from './http/listener.ts';
import { createRefusals } from './http/refusals.ts';
import { Playback } from './playback.ts';
import { createConfirmations } from './state/confirmations.ts';
import { createPlaybackStates, type PlaybackStates } from './state/playback-states.ts';
import { createRecordClient } from './state/record-client.ts';
import { createStateWatch } from './state/state-watch.ts';
import { createTail } from './state/tail.ts';
import { createTokens } from './tokens.ts';
import { createUsageMeter } from './usage/usage-meter.ts';
import { createUsagePublisher } from './usage/usage-publisher.ts';

export interface CdnDeps {
  config: CdnConfig;
  bus: Bus;
  objects: ObjectStore;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  /** The API's internal port and the value of `X-Internal-Secret`. */
  internal: { url: string; secret: string };
}

export interface Cdn extends Service {
  /** Where it listens, `http://host:port`, once started. */
  readonly listening: string;
}

/** How long a start waits for the bus, in milliseconds; it is joined later then. */
const joinMs = 5_000;

/**
 * The playback CDN: decides each request and serves bytes. Stateless; it writes nothing but watched time.
 * Starts also while the bus is away, since the internal route confirms states too.
 */
export function createCdn(deps: CdnDeps): Cdn {
  const { config, bus, objects, clock, logger, metrics } = deps;
  const record = createRecordClient({ ...deps.internal, timeoutMs: config.CDN_RECORD_TIMEOUT_MS });
  const states = createPlaybackStates({
    ...{ record, clock, logger, metrics },
    maximumBytes: config.CDN_STATE_CACHE_BYTES,
  });
  const blocks = createBlocks({
    ...{ objects, metrics },
    cacheBytes: config.CDN_BLOCK_CACHE_BYTES,
    fetchBytes: config.CDN_FETCH_BYTES,
    timeoutMs: config.CDN_STORE_TIMEOUT_MS,
  });
  const meter = createUsageMeter(clock, config.CDN_TOKEN_CACHE_BYTES);
  const usage = createUsagePublisher({ bus, meter, clock, logger, metrics });
  const admission = {
    tokens: createTokens(config.PLAYBACK_KEYS, config.CDN_TOKEN_CACHE_BYTES),
    ownOrigin: new URL(config.CDN_URL).origin,
  };
  const playback = new Playback({
    ...{ states, blocks, meter, clock, logger, admission },
    deliveries: createDeliveries(objects, {
      maximumBytes: config.CDN_INDEX_CACHE_BYTES,
      timeoutMs: config.CDN_STORE_TIMEOUT_MS,
    }),
    trustedProxies: config.TRUSTED_PROXIES,
  });
  const budget = new SendBudget(config.CDN_SEND_BYTES);
  metrics.observe(
    'millrace_cdn_unsent_bytes',
    'Memory of answers that viewers have not taken.',
    () => budget.held,
  );
  const newRequestId = createRequestIds();
  const shared = { refusals: createRefusals(config.DOCS_URL), budget, newRequestId };
  const createServer = async (): Promise<HttpServer> => {
    const files = await loadPlayer(config.MILLRACE_CACHE);
    const embed = createEmbed({ admission, states, files, clock, logger });
    return createHttpServer({
      ...{ logger, newRequestId },
      host: config.CDN_HOST,
      port: config.CDN_PORT,
      maxConnections: config.CDN_MAX_CONNECTIONS,
      docsUrl: config.DOCS_URL,
      // As every refusal has them; without a request there is no origin to echo.
      refusalHeaders: ['X-Svc-Error: invalid_request', 'Cache-Control: no-store', 'Vary: Origin'],
      handler: createListener({ playback, embed }, shared, metrics),
    });
  };

  const joining = Promise.withResolvers<undefined>();
  const tail = createTail({ bus, states, logger, metrics }, () => joining.resolve(undefined));
  const watch = createStateWatch({ states, clock, logger, metrics });
  const confirmations = createConfirmations({ bus, record, states, clock });
  const loops = superviseLoops([tail, watch, usage.loop, confirmations.loop], { clock, logger, metrics });
  let server: HttpServer | null = null;
  let listening: string | null = null;
  let stopping = false;

  return {
    name: 'cdn',
    get listening() {
      if (listening === null) throw new Error('the CDN does not listen yet');
      return listening;
    },
    async start(signal) {
      const announced = confirmations.announce().catch((error: unknown) => {
        logger.warn({ err: error }, 'could not announce this process; the record and the bus are away');
      });
      // Before the loops: what they tell is newer.
      await within(announced, joinMs, { clock, signal });
      loops.start();
      const [made] = await Promise.all([createServer(), within(joining.promise, joinMs, { clock, signal })]);
      server = made;
      const { port } = await server.listen();
      listening = `http://${config.CDN_HOST}:${port}`;
    },
    async stop() {
      stopping = true;
      await server?.close();
      blocks.close();
      await loops.stop();
      await Promise.all([
        confirmations.leave().catch((error: unknown) => {
          logger.warn({ err: error }, 'could not tell that this process is gone');
        }),
        usage.flush().catch((error: unknown) => {
          logger.error({ err: error }, 'the last second of watched time could not be published');
        }),
      ]);
      record.close();
    },
    health: () =>
      healthOf(states, loops.checks(), listening !== null && confirmations.announced && !stopping),
  };
}

/** Waits for `work`, but no longer than `ms`; rejects when the signal aborts. */
async function within(
  work: Promise<unknown>,
  ms: number,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<void> {
  const over = new AbortController();
  const sleep = clock.sleep(ms, AbortSignal.any([signal, over.signal]));
  await Promise.race([work, sleep]).finally(() => over.abort());
  signal.throwIfAborted();
}

/**
 * Never unready for an unconfirmed state: players get a clear 503 with it, and nothing from an absent process. But
 * unready until somebody knows of the process: else a hold would count as effective that it has not heard of.
 */
function healthOf(states: PlaybackStates, loops: Record<string, string>, ready: boolean): Health {
  const { tailSeconds, recordSeconds } = states.ages();
  const unconfirmed = Math.min(tailSeconds, recordSeconds);
  const state = unconfirmed < 20 ? 'ok' : `unconfirmed for ${Math.floor(unconfirmed)} s`;
  return { healthy: true, ready, checks: { ...loops, 'playback-state': state } };
}
