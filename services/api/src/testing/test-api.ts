import { type Problem } from '@millrace/contract';
import { parseKeySet } from '@millrace/domain';
import { type ObjectStore } from '@millrace/objects';
import { type Clock, createMetrics, type Metrics, systemClock } from '@millrace/platform';
import { createDatabase, type Database } from '@millrace/store';
import {
  type CapturedLog,
  captureLogger,
  createTestDatabase,
  createTestDnsServer,
  type TestDnsServer,
} from '@millrace/testing';
import { type ApiConfig } from '../config.ts';
import { type ApiDeps } from '../deps.ts';
import { createOperator, type Operator } from '../operator.ts';
import { createApi } from '../service.ts';
import { assertDeclared } from './declared-refusals.ts';

export const adminToken = 'admin-token-admin-token-admin-token';
export const internalSecret = 'internal-secret-internal-secret-int';

export interface Answer<Body = unknown> {
  status: number;
  headers: Headers;
  body: Body;
  /** The same body, for refusals. */
  problem: Problem;
}

export interface Ask {
  /** Bearer credential. */
  bearer?: string;
  /** Value of `svc_session`. */
  cookie?: string;
  headers?: Record<string, string>;
  /** Sent as JSON; a string is sent as it is. */
  body?: unknown;
}

/** A running API over a database of its own. */
export interface TestApi {
  url: string;
  internalUrl: string;
  connectionString: string;
  /** What it was made of, to make another one. */
  deps: ApiDeps;
  store: Database;
  operator: Operator;
  dns: TestDnsServer;
  log: CapturedLog;
  metrics: Metrics;
  /** Moves the API's clock. */
  travel(ms: number): void;
  now(): Date;
  /**
   * `POST /v1/projects`; paths that begin with `internal:` go to the internal port.
   * @throws Error for a refusal that the OpenAPI document does not list (contract VER-003)
   */
  ask<Body = unknown>(request: string, ask?: Ask): Promise<Answer<Body>>;
  close(): Promise<void>;
}

/** An account with a project, and every way to call it. */
export interface Tenant {
  accountId: string;
  userId: string;
  projectId: string;
  cookie: string;
  /** Values of API keys. */
  full: string;
  playback: string;
}

export async function createTestApi(
  options: { objects?: ObjectStore; config?: Partial<ApiConfig>; fetch?: typeof fetch } = {},
): Promise<TestApi> {
  const database = await createTestDatabase();
  const dns = await createTestDnsServer();
  const log = captureLogger();
  const store = createDatabase({ connectionString: database.connectionString, logger: log.logger });
  let offsetMs = 0;
  const now = (): Date => new Date(Date.now() + offsetMs);
  const clock: Clock = { now, sleep: (ms, signal) => systemClock.sleep(ms, signal) };
  const metrics = createMetrics({ service: 'api' });
  const deps: ApiDeps = {
    config: { ...defaultConfig, DNS_SERVERS: [dns.address], ...options.config },
    // Features without objects get a store that fails on every use.
    objects: options.objects ?? ({} as ObjectStore),
    checkAnswers: true,
    ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
    logger: log.logger,
    ...{ store, clock, metrics },
  };
  const api = createApi(deps);
  await api.start(new AbortController().signal);
  const urls = { public: api.listening, internal: api.internalListening };
  return {
    url: urls.public,
    internalUrl: urls.internal,
    operator: createOperator({ store, clock }),
    travel: (ms) => {
      offsetMs += ms;
    },
    ask: (request, ask = {}) => send(urls, request, ask),
    close: async () => {
      await api.stop();
      await Promise.all([store.close(), dns.close()]);
      await database.drop();
    },
    connectionString: database.connectionString,
    ...{ deps, store, dns, log, metrics, now },
  };
}

let tenants = 0;
/** A fresh account on a plan, with one project; `agency` unless told. */
export async function createTenant({ operator }: TestApi, planId = 'agency'): Promise<Tenant> {
  tenants++;
  const name = `Tenant ${tenants}`;
  const { account, user } = await operator.createAccount({ name, email: `t${tenants}@example.com`, planId });
  const project = await operator.createProject({ accountId: account.id, name });
  const key = async (scope: 'full' | 'playback'): Promise<string> =>
    (await operator.createApiKey({ projectId: project.id, name: scope, scope })).value;
  const { cookie } = await operator.createSession({ userId: user.id });
  return {
    ...{ accountId: account.id, userId: user.id, projectId: project.id, cookie },
    full: await key('full'),
    playback: await key('playback'),
  };
}

const defaultConfig: ApiConfig = {
  NODE_ENV: 'test',
  API_HOST: '127.0.0.1',
  API_PORT: 0,
  API_INTERNAL_HOST: '127.0.0.1',
  API_INTERNAL_PORT: 0,
  API_MAX_CONNECTIONS: 1_000,
  TRUSTED_PROXIES: 0,
  API_RATE_PER_MINUTE: 1_000_000,
  AUTH_RATE_PER_MINUTE: 1_000_000,
  DEMO_RATE_PER_MINUTE: 1_000_000,
  API_URL: 'https://api.example.com',
  CDN_URL: 'https://cdn.example.com',
  DOCS_URL: 'https://docs.example.com',
  DASHBOARD_HOSTS: ['app.example.com'],
  SSO_GOOGLE_ISSUER: 'https://accounts.google.com',
  SSO_MICROSOFT_ISSUER: 'https://login.microsoftonline.com/common/v2.0',
  SIGN_IN_KEYS: parseKeySet(`s1:${'s'.repeat(32)}`),
  PHONE_KEYS: parseKeySet(`h1:${'h'.repeat(32)}`),
  TWILIO_URL: 'https://api.twilio.com',
  CURSOR_KEYS: parseKeySet(`c1:${'c'.repeat(32)}`),
  PLAYBACK_KEYS: parseKeySet(`p1:${'p'.repeat(32)}`),
  UPLOAD_TOKEN_KEYS: parseKeySet(`u1:${'u'.repeat(32)}`),
  WEBHOOK_SECRET_KEYS: parseKeySet(`w1:${'w'.repeat(32)}`),
  WEBHOOKS_ALLOW_LOOPBACK: false,
  BILLING_CALLBACK_SECRETS: new Map(),
  ADMIN_TOKEN: adminToken,
  INTERNAL_SECRET: internalSecret,
  DNS_SERVERS: [],
};

async function send<Body>(
  urls: { public: string; internal: string },
  request: string,
  { bearer, cookie, headers = {}, body }: Ask,
): Promise<Answer<Body>> {
  const [method = 'GET', target = '/'] = request.split(' ');
  const url = target.startsWith('internal:')
    ? urls.internal + target.slice('internal:'.length)
    : urls.public + target;
  const response = await fetch(url, {
    method,
    headers: {
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
      ...(cookie === undefined ? {} : { cookie: `svc_session=${cookie}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const read = await response.text();
  const parsed: unknown = read === '' ? undefined : JSON.parse(read);
  const { code } = (parsed ?? {}) as Partial<Problem>;
  if (response.status >= 400 && code !== undefined && !target.startsWith('internal:')) {
    assertDeclared(method, target, response.status, code);
  }
  return {
    status: response.status,
    headers: response.headers,
    body: parsed as Body,
    problem: parsed as Problem,
  };
}
