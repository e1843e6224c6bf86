import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from 'jose';
import { createServer, type Server } from 'node:http';
import { type AddressInfo } from 'node:net';
import { type RouteDefinition } from '@millrace/contract';
import { captureLogger } from '@millrace/testing';
import { createGatewayVerifier, type GatewayVerifier } from './gateway-token.ts';
import { createInternalGuard } from './internal-guard.ts';

/** The verification of an access gateway's token by itself, against a real server of its keys. */

const issuer = 'https://gateway.example.com';
const audience = 'millrace-admin';
let keys: Record<'RS256' | 'ES256' | 'PS256', CryptoKey>;
let published: unknown;
let status = 200;
let gateway: Server;
let url: string;
let verify: GatewayVerifier;

beforeAll(async () => {
  const pairs = {
    RS256: await generateKeyPair('RS256'),
    ES256: await generateKeyPair('ES256'),
    PS256: await generateKeyPair('PS256'),
  };
  keys = { RS256: pairs.RS256.privateKey, ES256: pairs.ES256.privateKey, PS256: pairs.PS256.privateKey };
  published = {
    keys: await Promise.all(
      Object.entries(pairs).map(async ([alg, { publicKey }]) => ({
        ...(await exportJWK(publicKey)),
        ...{ kid: alg, alg },
      })),
    ),
  };
  gateway = createServer((request, response) => {
    if (request.url === '/silent') return;
    response.statusCode = status;
    response.end(JSON.stringify(request.url === '/junk' ? { keys: 'none' } : published));
  });
  await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`;
});
afterAll(async () => {
  gateway.closeAllConnections();
  await new Promise((resolve) => gateway.close(resolve));
});

const configOf = (path = '/keys', base = url) => ({
  ADMIN_JWT_ISSUER: issuer,
  ADMIN_JWT_AUDIENCE: audience,
  ADMIN_JWKS_URL: `${base}${path}`,
});
const verifierOf = (path?: string, base?: string): GatewayVerifier => {
  const made = createGatewayVerifier(configOf(path, base));
  if (made === null) throw new Error('it is not configured');
  return made;
};
beforeEach(() => {
  status = 200;
  verify = verifierOf();
});

/** A token of the gateway; a claim that is null is left out. */
const sign = (claims: Record<string, unknown> = {}, alg: keyof typeof keys = 'RS256'): Promise<string> => {
  const exp = Math.floor(Date.now() / 1000) + 3_600;
  const all: [string, unknown][] = Object.entries({ iss: issuer, aud: audience, exp, sub: 'u1', ...claims });
  return new SignJWT(Object.fromEntries(all.filter(([, value]) => value !== null)))
    .setProtectedHeader({ alg, kid: alg })
    .sign(keys[alg]);
};

describe('a gateway’s token', () => {
  it.each<[string, Record<string, unknown>, string]>([
    ['its e-mail', { email: 'a@example.com' }, 'a@example.com'],
    ['its subject without an e-mail', {}, 'u1'],
    ['its subject when the e-mail is no text', { email: 1 }, 'u1'],
    ['nobody without both', { sub: null }, 'unnamed'],
  ])('names %s', async (_what, claims, subject) => {
    expect(await verify(await sign(claims))).toEqual({ subject });
  });

  it.each(['iss', 'aud', 'exp'])('is not taken without %s, nor with another one', async (claim) => {
    expect(await verify(await sign({ [claim]: null }))).toBeNull();
    expect(await verify(await sign({ [claim]: claim === 'exp' ? 1 : 'other' }))).toBeNull();
  });

  it('may be signed by RS256 or ES256, and by nothing else though its key is published', async () => {
    expect(await verify(await sign({}, 'ES256'))).toEqual({ subject: 'u1' });
    expect(await verify(await sign({}, 'PS256'))).toBeNull();
  });

  it('is nobody’s when it is no token', async () => {
    for (const text of ['', 'x', 'a.b.c']) expect(await verify(text)).toBeNull();
  });

  it('opens the team’s routes to whom it names, beside the shared token', async () => {
    const guard = createInternalGuard({ ...configOf(), INTERNAL_SECRET: 's'.repeat(32) });
    const ask = async (token: string): Promise<unknown> =>
      guard({ auth: ['admin'] } as unknown as RouteDefinition, {
        ...{ method: 'GET', params: {}, log: captureLogger().logger },
        headers: { authorization: `Bearer ${token}` },
      });
    expect(await ask(await sign())).toEqual({
      context: { caller: { kind: 'admin', actor: 'u1' } },
      jsonOnly: false,
    });
    await expect(ask(await sign({ aud: 'other' }))).rejects.toMatchObject({ code: 'unauthorized' });
  });
});

describe('a gateway’s keys', () => {
  const unavailable = {
    code: 'service_unavailable',
    detail: 'The access gateway’s keys cannot be had.',
    retryAfter: 5,
    cause: expect.anything() as unknown,
  };

  it('that cannot be had are no reason to call the token wrong', async () => {
    await expect(verifierOf('/junk')(await sign())).rejects.toMatchObject(unavailable);
    await expect(verifierOf('', 'http://127.0.0.1:1')(await sign())).rejects.toMatchObject(unavailable);
    status = 500;
    await expect(verify(await sign())).rejects.toMatchObject(unavailable);
  });

  it('are waited for 5 seconds', async () => {
    const timeout = jest.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
      const reason = new DOMException(`after ${ms}`, 'TimeoutError');
      return AbortSignal.abort(reason);
    });
    try {
      await expect(verifierOf('/silent')(await sign())).rejects.toMatchObject(unavailable);
      expect(timeout).toHaveBeenCalledWith(5_000);
    } finally {
      timeout.mockRestore();
    }
  });

  it('are not asked for where the gateway is configured in part', () => {
    expect(createGatewayVerifier(configOf())).not.toBeNull();
    for (const name of Object.keys(configOf())) {
      expect(createGatewayVerifier({ ...configOf(), [name]: undefined })).toBeNull();
    }
  });
});
