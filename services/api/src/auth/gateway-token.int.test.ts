import { createServer, type Server } from 'node:http';
import { type AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { type Answer, createTestApi, type TestApi } from '../testing/test-api.ts';

const issuer = 'https://gateway.example.com';
const audience = 'millrace-admin';
let keys: Record<'rsa' | 'ec' | 'other', CryptoKey>;
let gateway: Server;
let api: TestApi;
let served: unknown;

beforeAll(async () => {
  const pairs = {
    rsa: await generateKeyPair('RS256'),
    ec: await generateKeyPair('ES256'),
    other: await generateKeyPair('RS256'),
  };
  keys = { rsa: pairs.rsa.privateKey, ec: pairs.ec.privateKey, other: pairs.other.privateKey };
  served = {
    keys: [
      { ...(await exportJWK(pairs.rsa.publicKey)), kid: 'rsa', alg: 'RS256' },
      { ...(await exportJWK(pairs.ec.publicKey)), kid: 'ec', alg: 'ES256' },
    ],
  };
  gateway = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(served));
  });
  await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}/keys`;
  api = await createTestApi({
    config: { ADMIN_JWT_ISSUER: issuer, ADMIN_JWT_AUDIENCE: audience, ADMIN_JWKS_URL: url },
  });
});
afterAll(async () => {
  await api.close();
  await new Promise((resolve) => gateway.close(resolve));
});

interface Token {
  key?: CryptoKey;
  header?: { alg: string; kid?: string };
  claims?: { [name in keyof JWTPayload]?: JWTPayload[name] | undefined };
}
const inAnHour = (): number => Math.floor(Date.now() / 1000) + 3_600;
const sign = ({
  key = keys.rsa,
  header = { alg: 'RS256', kid: 'rsa' },
  claims = {},
}: Token = {}): Promise<string> =>
  new SignJWT(
    JSON.parse(
      JSON.stringify({
        iss: issuer,
        aud: audience,
        exp: inAnHour(),
        sub: 'u1',
        email: 'a@example.com',
        ...claims,
      }),
    ) as JWTPayload,
  )
    .setProtectedHeader(header)
    .sign(key);
const ask = (bearer: string): Promise<Answer> => api.ask('GET internal:/admin/audit', { bearer });

describe('an access gateway’s token', () => {
  it('lets the team in, signed by RSA or by an elliptic curve, and names who acted [ADM-002]', async () => {
    expect((await ask(await sign())).status).toBe(200);
    expect((await ask(await sign({ key: keys.ec, header: { alg: 'ES256', kid: 'ec' } }))).status).toBe(200);
    const { account } = await api.operator.createAccount({
      name: 'A',
      email: 'a1@example.com',
      planId: 'free',
    });
    await api.ask(`POST internal:/admin/accounts/${account.id}/ban`, { bearer: await sign(), body: {} });
    const { rows } = await api.store.query(
      'select actor, action from audit where subject = $1 and action = $2',
      [account.id, 'account.ban'],
    );
    expect(rows).toEqual([{ actor: 'a@example.com', action: 'account.ban' }]);
  });

  it.each<[string, () => Token]>([
    ['of another issuer', () => ({ claims: { iss: 'https://evil.example.com' } })],
    ['for another audience', () => ({ claims: { aud: 'other' } })],
    ['that expired', () => ({ claims: { exp: Math.floor(Date.now() / 1000) - 1 } })],
    ['without an expiry', () => ({ claims: { exp: undefined } })],
    ['without an issuer', () => ({ claims: { iss: undefined } })],
    ['without an audience', () => ({ claims: { aud: undefined } })],
    ['signed by another key', () => ({ key: keys.other })],
    ['that names a key of none', () => ({ header: { alg: 'RS256', kid: 'nobody' } })],
  ])('%s is 401 [ADM-002]', async (_what, token) => {
    const { status, problem } = await ask(await sign(token()));
    expect([status, problem.code]).toEqual([401, 'unauthorized']);
  });

  it('that is not signed, or by a secret that is no secret, is 401', async () => {
    const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
    const claims = encode({ iss: issuer, aud: audience, exp: inAnHour(), sub: 'u1' });
    expect((await ask(`${encode({ alg: 'none' })}.${claims}.`)).status).toBe(401);
    const hmac = await new SignJWT({ iss: issuer, aud: audience, exp: inAnHour() })
      .setProtectedHeader({ alg: 'HS256', kid: 'rsa' })
      .sign(Buffer.from(JSON.stringify(served)));
    expect((await ask(hmac)).status).toBe(401);
  });

  it('is no credential on the customers’ port', async () => {
    expect((await api.ask('GET /v1/me', { bearer: await sign() })).status).toBe(401);
  });

  it('cannot be checked while the gateway is away: 503, and the shared token still works', async () => {
    const away = await createTestApi({
      config: {
        ADMIN_JWT_ISSUER: issuer,
        ADMIN_JWT_AUDIENCE: audience,
        ADMIN_JWKS_URL: 'http://127.0.0.1:1/keys',
      },
    });
    try {
      const get = (bearer: string): Promise<Answer> => away.ask('GET internal:/admin/audit', { bearer });
      const { status, problem } = await get(await sign());
      expect([status, problem.code]).toEqual([503, 'service_unavailable']);
      expect((await get(away.deps.config.ADMIN_TOKEN ?? '')).status).toBe(200);
    } finally {
      await away.close();
    }
  });
});
