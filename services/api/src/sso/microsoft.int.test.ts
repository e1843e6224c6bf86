import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type User } from '@millrace/contract';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { createBrowser } from '../testing/browser.ts';
import { createTestApi, type TestApi } from '../testing/test-api.ts';

const authority = 'https://login.microsoftonline.com';
const tenantId = '72f988bf-86f1-41af-91ab-2d7cd011db47';
const origin = 'https://api.example.com';

let api: TestApi;
/** What the next ID token says, over what a good one does. */
let more: Record<string, unknown> = {};
let nonce = '';
beforeAll(async () => {
  api = await createTestApi({
    config: { SSO_MICROSOFT_CLIENT_ID: 'client', SSO_MICROSOFT_CLIENT_SECRET: 'secret' },
    fetch: await entraId(),
  });
});
afterAll(() => api.close());

/** Microsoft's endpoint for all tenants: its metadata names no tenant, its tokens do. */
async function entraId(): Promise<typeof fetch> {
  const { privateKey, publicKey } = await generateKeyPair('RS256');
  const keys = [{ ...(await exportJWK(publicKey)), kid: 'k', use: 'sig', alg: 'RS256' }];
  const answers: Record<string, () => unknown> = {
    '/common/v2.0/.well-known/openid-configuration': () => ({
      issuer: `${authority}/{tenantid}/v2.0`,
      authorization_endpoint: `${authority}/common/oauth2/v2.0/authorize`,
      token_endpoint: `${authority}/common/oauth2/v2.0/token`,
      jwks_uri: `${authority}/common/discovery/v2.0/keys`,
      response_types_supported: ['code'],
      subject_types_supported: ['pairwise'],
      id_token_signing_alg_values_supported: ['RS256'],
    }),
    '/common/discovery/v2.0/keys': () => ({ keys }),
    '/common/oauth2/v2.0/token': async () => ({
      ...{ token_type: 'Bearer', access_token: 'opaque', expires_in: 3_600 },
      id_token: await new SignJWT({
        ...{ iss: `${authority}/${tenantId}/v2.0`, tid: tenantId, aud: 'client', sub: 'pairwise', nonce },
        ...{ name: 'Mia', email: 'mia@example.com', xms_edov: true, ...more },
      })
        .setProtectedHeader({ alg: 'RS256', kid: 'k' })
        .setIssuedAt()
        .setExpirationTime('5m')
        .sign(privateKey),
    }),
  };
  return async (input) => {
    const { pathname } = new URL(input instanceof Request ? input.url : input);
    return Response.json(await answers[pathname]?.());
  };
}

async function signIn(claims: Record<string, unknown> = {}) {
  more = claims;
  const browser = createBrowser({ [origin]: api.url });
  const { location } = await browser.open(`${origin}/auth/microsoft/start`);
  const asked = new URL(location ?? '');
  expect(asked.origin + asked.pathname).toBe(`${authority}/common/oauth2/v2.0/authorize`);
  nonce = asked.searchParams.get('nonce') ?? '';
  const state = asked.searchParams.get('state') ?? '';
  const { status } = await browser.open(`${origin}/auth/microsoft/callback?code=c&state=${state}`);
  return { status, session: browser.cookies(origin).get('svc_session') };
}

describe('Microsoft’s endpoint for all tenants', () => {
  it('signs in by the issuer of the person’s own tenant [SSO-210, SSO-213]', async () => {
    const { status, session = '' } = await signIn();
    expect(status).toBe(303);
    const { body } = await api.ask<{ user: User }>('GET /v1/me', { cookie: session });
    expect(body.user).toMatchObject({ email: 'mia@example.com', displayName: 'Mia' });
    const { rows } = await api.store.query('select issuer, subject from users where id = $1', [body.user.id]);
    expect(rows).toEqual([{ issuer: `${authority}/${tenantId}/v2.0`, subject: 'pairwise' }]);
  });

  it('takes the same subject of another tenant for another person [SSO-210]', async () => {
    const tid = '9188040d-6c67-4c5b-b112-36a304b66dad';
    const claims = { iss: `${authority}/${tid}/v2.0`, tid };
    expect(await signIn(claims)).toEqual({ status: 400, session: undefined });
    expect((await signIn({ ...claims, email: 'mia@example.org' })).status).toBe(303);
  });

  it.each<[string, Record<string, unknown>]>([
    ['of an issuer that is not its tenant’s', { iss: `${authority}/another/v2.0` }],
    ['of another issuer', { iss: 'https://evil.example', tid: 'evil' }],
    ['of the template itself', { iss: `${authority}/{tenantid}/v2.0` }],
    ['for another client', { aud: 'other' }],
  ])('refuses a token %s [SSO-205]', async (_what, claims) => {
    expect(await signIn({ sub: 'other', email: 'other@example.com', ...claims })).toEqual({
      status: 502,
      session: undefined,
    });
  });
});
