import { createHash, randomBytes } from 'node:crypto';
import { exportJWK, generateKeyPair } from 'jose';
import Provider, { type Configuration, type KoaContextWithOIDC } from 'oidc-provider';
import { refusalPage } from './page.ts';
import { createRecords } from './records.ts';

/** The one client of the provider: the API. */
export interface Client {
  id: string;
  secret: string;
  redirectUris: readonly string[];
}

/** What a developer says who they are. */
export interface Person {
  email: string;
  name: string;
  verified: boolean;
}

export interface People {
  /** Notes a person and answers their subject: the same for the same e-mail address, also after a restart. */
  note(person: Person): string;
  find(subject: string): Person | undefined;
}

export function createPeople(): People {
  const people = new Map<string, Person>();
  return {
    note(person) {
      const subject = createHash('sha256').update(person.email.toLowerCase()).digest('base64url');
      people.set(subject, person);
      return subject;
    },
    find: (subject) => people.get(subject),
  };
}

const minute = 60;

/** An OpenID Connect provider for one client. Its signing key lives as long as the process. */
export async function createProvider(issuer: string, client: Client, people: People): Promise<Provider> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const kid = randomBytes(8).toString('hex');
  const configuration: Configuration = {
    adapter: createRecords(),
    clients: [
      {
        client_id: client.id,
        client_secret: client.secret,
        client_name: 'Millrace',
        redirect_uris: [...client.redirectUris],
        token_endpoint_auth_method: 'client_secret_post',
      },
    ],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid }] },
    cookies: { keys: [randomBytes(32).toString('base64url')] },
    features: { devInteractions: { enabled: false } },
    pkce: { required: () => true },
    // Google and Microsoft put these into the ID token too.
    conformIdTokenClaims: false,
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'xms_edov'] },
    findAccount: (_context, accountId) => ({ accountId, claims: () => claimsOf(accountId, people) }),
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    loadExistingGrant: consent,
    renderError: (context, { error, error_description: detail = '' }) => {
      context.type = 'html';
      context.body = refusalPage(error, detail);
    },
    ttl: {
      ...{ Session: 10 * minute, Interaction: 10 * minute, Grant: 10 * minute },
      ...{ AuthorizationCode: minute, AccessToken: minute, IdToken: minute },
    },
  };
  return new Provider(issuer, configuration);
}

function claimsOf(sub: string, people: People) {
  const person = people.find(sub);
  if (person === undefined) return { sub };
  const { email, name, verified } = person;
  // Microsoft says by a claim of its own that it has verified an address.
  return { sub, email, email_verified: verified, xms_edov: verified, ...(name === '' ? {} : { name }) };
}

/** Nobody is asked whether the client may know who they are. */
async function consent({ oidc }: KoaContextWithOIDC) {
  const grant = new oidc.provider.Grant({
    clientId: oidc.client?.clientId ?? '',
    accountId: oidc.session?.accountId ?? '',
  });
  grant.addOIDCScope('openid email profile');
  await grant.save();
  return grant;
}
