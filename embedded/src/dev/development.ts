import { type Logger, type Site } from '@millrace/platform';
import { choosePorts } from '../data-folder/ports.ts';
import { createConsoleSite } from './console/site.ts';
import { startDevDns } from './dev-zone.ts';
import { type DevIdentityProvider, identityHost, startDevIdentityProvider } from './identity/server.ts';

export interface Development {
  /** Settings of the services, over those of the environment. */
  settings: NodeJS.ProcessEnv;
  /** `host:port` of the DNS server. */
  dns: string;
  /** The console, for the API to serve. */
  site: Site;
  /** Where the console is opened. */
  consoleUrl: string;
  close(): Promise<void>;
}

export interface DevelopmentOptions {
  dataDir: string;
  host: string;
  /** Where browsers reach the services. */
  urls: { api: string; cdn: string; upload: string };
  env: NodeJS.ProcessEnv;
  logger: Logger;
}

/** Previews need one. The name is this machine's, so that nobody else can stand there. */
const dashboardHost = 'dashboard.millrace.localhost';
const providers = ['google', 'microsoft'] as const;

/**
 * What `--dev` adds: a DNS server for the verification of domains, an identity provider that signs anybody in, and a
 * console; codes of phone verification come in answers, and webhooks may go to this machine.
 */
export async function startDevelopment(options: DevelopmentOptions): Promise<Development> {
  const { dataDir, host, urls, env, logger } = options;
  // People are known by issuer and subject: at the same address they are the same over restarts.
  const ports = await choosePorts(dataDir, identityHost, { identity: 0 }, logger);
  const dns = await startDevDns(dataDir, host);
  const redirectUris = providers.map((name) => `${urls.api}/auth/${name}/callback`);
  const identity = await startDevIdentityProvider({ port: ports.identity, redirectUris, logger }).catch(
    async (error: unknown) => {
      await dns.close();
      throw error;
    },
  );
  return {
    dns: dns.address,
    settings: {
      DNS_SERVERS: dns.address,
      WEBHOOKS_ALLOW_LOOPBACK: 'true',
      SMS_PROVIDER: env['SMS_PROVIDER'] ?? 'log',
      ...dashboardOf(env, urls.api),
      ...signInSettings(env, identity),
    },
    site: createConsoleSite(urls),
    consoleUrl: `${urls.api}/dev/`,
    close: async () => {
      await Promise.all([dns.close(), identity.close()]);
    },
  };
}

/** A dashboard that the environment names is where sign-in leads; without one the console is it. */
const dashboardOf = (env: NodeJS.ProcessEnv, api: string): NodeJS.ProcessEnv =>
  env['DASHBOARD_HOSTS'] === undefined && env['DASHBOARD_URL'] === undefined
    ? { DASHBOARD_HOSTS: dashboardHost, DASHBOARD_URL: api }
    : {};

/** Every provider that the environment does not set up is the one for development. */
function signInSettings(env: NodeJS.ProcessEnv, identity: DevIdentityProvider): NodeJS.ProcessEnv {
  const settings: NodeJS.ProcessEnv = {};
  for (const name of providers.map((each) => `SSO_${each.toUpperCase()}`)) {
    if (env[`${name}_CLIENT_ID`] !== undefined) continue;
    settings[`${name}_ISSUER`] = identity.issuer;
    settings[`${name}_CLIENT_ID`] = identity.clientId;
    settings[`${name}_CLIENT_SECRET`] = identity.clientSecret;
  }
  return settings;
}
