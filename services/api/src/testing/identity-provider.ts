import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { exportJWK, generateKeyPair } from 'jose';
import Provider, { type Configuration, type KoaContextWithOIDC } from 'oidc-provider';

export const clientId = 'millrace-test';
export const clientSecret = 'client-secret-client-secret-client-secret';

/** Whom the provider finds at its next login form. */
export interface Person {
  sub: string;
  email?: string;
  email_verified?: boolean;
  xms_edov?: unknown;
  name?: string;
}

export interface IdentityProvider {
  issuer: string;
  /** Logs in as this person from now on; null: the person presses cancel. */
  person: Person | null;
  close(): Promise<void>;
}

/** A real OpenID Connect provider on loopback; its login form fills itself in. */
export async function createIdentityProvider(redirectUris: readonly string[]): Promise<IdentityProvider> {
  const people = new Map<string, Person>();
  const server = createServer();
  const issuer = await listen(server);
  const provider = new Provider(issuer, await configurationOf(redirectUris, people));
  const idp: IdentityProvider = {
    issuer,
    person: null,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
  const handle = provider.callback();
  server.on('request', (request, response) => {
    if (request.url?.startsWith('/interaction/') === true) void logIn(request, response);
    else void handle(request, response);
  });
  return idp;

  async function logIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { person } = idp;
    if (person !== null) people.set(person.sub, person);
    const result = person === null ? { error: 'access_denied' } : { login: { accountId: person.sub } };
    await provider.interactionFinished(request, response, result);
  }
}

async function configurationOf(
  redirectUris: readonly string[],
  people: ReadonlyMap<string, Person>,
): Promise<Configuration> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  return {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [...redirectUris],
        token_endpoint_auth_method: 'client_secret_post',
      },
    ],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: 'k1' }] },
    cookies: { keys: ['cookie-key'] },
    features: { devInteractions: { enabled: false } },
    pkce: { required: () => true },
    // Google and Microsoft put these into the ID token too.
    conformIdTokenClaims: false,
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'xms_edov'] },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    findAccount: (_context, accountId) => ({
      accountId,
      claims: () => ({ ...people.get(accountId), sub: accountId }),
    }),
    loadExistingGrant: consent,
    ttl: { Session: 60, Interaction: 60, Grant: 60, AccessToken: 60, IdToken: 60, AuthorizationCode: 60 },
  };
}

/** Nobody is asked whether the client may know who they are. */
async function consent({ oidc }: KoaContextWithOIDC) {
  const given = oidc.session?.grantIdFor(oidc.client?.clientId ?? '');
  if (given !== undefined) return oidc.provider.Grant.find(given);
  const grant = new oidc.provider.Grant({
    clientId: oidc.client?.clientId ?? '',
    accountId: oidc.session?.accountId ?? '',
  });
  grant.addOIDCScope('openid email profile');
  await grant.save();
  return grant;
}

const listen = (server: Server): Promise<string> =>
  new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      resolve(`http://127.0.0.1:${(server.address() as { port: number }).port}`);
    });
  });
