import { type IncomingHttpHeaders, request } from 'node:http';
import { BusUnavailableError } from '@millrace/bus';
import { createMemoryBus, type MemoryBus } from '@millrace/bus/memory';
import { type PlaybackStateMessage, topics } from '@millrace/contract';
import { type KeySet, parseKeySet, type PlaybackClaims, signPlaybackToken } from '@millrace/domain';
import { createMetrics, type Metrics } from '@millrace/platform';
import {
  captureLogger,
  type CapturedLog,
  createManualClock,
  createTestObjects,
  type ManualClock,
  type TestObjects,
  waitFor,
} from '@millrace/testing';
import { cdnConfig } from '../config.ts';
import { type Cdn, createCdn } from '../service.ts';
import { createRecordStub, type RecordStub } from './record-stub.ts';
import { accountState, projectState, sample, storeSample, videoState } from './sample.ts';

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

export interface Ask {
  method?: string;
  /** Null: without a token. */
  token?: string | null;
  /** Null: without an `Origin`. */
  origin?: string | null;
  headers?: Record<string, string>;
}

/** A running CDN with a memory bus, a folder store, a clock that stands and the sample video in the record. */
export interface CdnHarness {
  cdn: Cdn;
  clock: ManualClock;
  bus: MemoryBus;
  store: TestObjects;
  record: RecordStub;
  metrics: Metrics;
  log: CapturedLog;
  /** A token for the sample video on its domain, good for an hour, unless told. */
  token(more?: Partial<PlaybackClaims>, keySet?: KeySet): string;
  /** Asks for a path below the sample video (or any path that begins with `/`), as its domain's page would. */
  ask(path: string, more?: Ask): Promise<Answer>;
  publish(...messages: PlaybackStateMessage[]): Promise<void>;
  /** Publishes a heartbeat of now on each partition and waits until the CDN has read them. */
  beat(): Promise<void>;
  /** The value of a metric without labels, or with exactly these in the text format. */
  metric(name: string): Promise<number>;
  /** What was away at the start is there. */
  back(what: keyof AwayAtStart): void;
  close(): Promise<void>;
}

const keySet = parseKeySet(`k1:${'1'.repeat(32)}`);
export const otherKeys = parseKeySet(`k1:${'2'.repeat(32)}`);

const running = new Set<CdnHarness>();

/** Closes every CDN that `startCdn` began, also after a test that failed half-way. */
export async function closeCdns(): Promise<void> {
  for (const harness of running) await harness.close();
}

/** What is away while it starts, until `back` is called. */
export interface AwayAtStart {
  bus?: true;
  record?: true;
}

export async function startCdn(
  env: Record<string, string> = {},
  away: AwayAtStart = {},
): Promise<CdnHarness> {
  const clock = createManualClock();
  const bus = createMemoryBus();
  let isBusAway = away.bus === true;
  const unlessAway = <T>(work: () => Promise<T>): Promise<T> =>
    isBusAway ? Promise.reject(new BusUnavailableError('the bus is away')) : work();
  const store = await createTestObjects();
  await storeSample(store.objects);
  const record = await createRecordStub();
  record.down = away.record === true;
  record.videos.set(sample.videoId, videoState());
  record.accounts.set(sample.accountId, accountState());
  record.projects.set(sample.projectId, projectState());
  const metrics = createMetrics({ service: 'cdn' });
  const log = captureLogger();
  const config = cdnConfig.parse({
    CDN_URL: 'https://cdn.example.net',
    DOCS_URL: 'https://docs.example',
    PLAYBACK_KEYS: `k1:${'1'.repeat(32)}`,
    ...env,
  });
  const cdn = createCdn({
    ...{ config, clock, metrics },
    bus: {
      ...bus,
      publish: (...args) => unlessAway(() => bus.publish(...args)),
      subscribe: (...args) => unlessAway(() => bus.subscribe(...args)),
    },
    objects: store.objects,
    logger: log.logger,
    internal: { url: record.url, secret: record.secret },
  });
  await cdn.start(new AbortController().signal);

  const token: CdnHarness['token'] = (more = {}, keys = keySet) => {
    const expiresAt = new Date(clock.now().getTime() + 3_600_000);
    return signPlaybackToken(
      { kind: 'playback', videoId: sample.videoId, domain: sample.domain, expiresAt, ...more },
      keys,
    );
  };
  const metric: CdnHarness['metric'] = async (name) => {
    const line = (await metrics.render()).split('\n').find((each) => each.startsWith(name));
    return Number(line?.split(' ').at(-1));
  };
  const publish: CdnHarness['publish'] = async (...messages) => {
    await bus.publish(
      messages.map((message) => ({
        topic: topics.playbackState.name,
        key: keyOf(message),
        value: message,
      })),
    );
  };
  const harness: CdnHarness = {
    ...{ cdn, clock, bus, store, record, metrics, log, token, metric, publish },
    back: (what) => {
      if (what === 'bus') isBusAway = false;
      else record.down = false;
    },
    ask: (path, more = {}) => {
      const given = more.token === undefined ? token() : more.token;
      const full = path.startsWith('/') ? path : `/v/${sample.videoId}/${path}`;
      return ask(cdn.listening, given === null ? full : `${full}?token=${given}`, more);
    },
    beat: async () => {
      const at = clock.now().toISOString();
      const value: PlaybackStateMessage = { v: 1, kind: 'heartbeat', at };
      const { name, partitions } = topics.playbackState;
      await bus.publish(
        Array.from({ length: partitions }, (_, partition) => ({
          topic: name,
          key: 'heartbeat',
          value,
          partition,
        })),
      );
      await waitFor(async () => (await metric('millrace_cdn_state_tail_age_seconds')) === 0, {
        what: 'the heartbeat to be read',
      });
    },
    close: async () => {
      running.delete(harness);
      await cdn.stop();
      await bus.close();
      await record.close();
      await store.close();
    },
  };
  running.add(harness);
  return harness;
}

const keyOf = (message: PlaybackStateMessage): string => {
  switch (message.kind) {
    case 'heartbeat':
      return 'heartbeat';
    case 'video':
      return message.state.videoId;
    case 'account':
      return message.state.accountId;
    case 'project':
      return message.state.projectId;
  }
};

/** One request on a connection of its own. */
export function ask(
  base: string,
  path: string,
  { method = 'GET', origin, headers = {} }: Ask = {},
): Promise<Answer> {
  const { hostname, port } = new URL(base);
  const own = origin === null ? {} : { Origin: origin ?? `https://${sample.domain}` };
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, method, headers: { ...own, ...headers }, agent: false });
    sent.once('error', reject);
    sent.once('response', (response) => {
      response.toArray().then((chunks: Buffer[]) => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) });
      }, reject);
    });
    sent.end();
  });
}
