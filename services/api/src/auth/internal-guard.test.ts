import { describe, expect, it } from '@jest/globals';
import { type RouteDefinition } from '@millrace/contract';
import { captureLogger } from '@millrace/testing';
import { type IncomingHttpHeaders } from 'node:http';
import { createInternalGuard } from './internal-guard.ts';

const adminToken = 'a'.repeat(32);
const secret = 's'.repeat(32);
const bearer = (token: string): IncomingHttpHeaders => ({ authorization: `Bearer ${token}` });

const ask = (
  auth: RouteDefinition['auth'],
  headers: IncomingHttpHeaders,
  token: string | undefined = adminToken,
): Promise<unknown> =>
  createInternalGuard({ ADMIN_TOKEN: token, INTERNAL_SECRET: secret })(
    { auth } as unknown as RouteDefinition,
    {
      method: 'GET',
      params: {},
      log: captureLogger().logger,
      headers,
    },
  );
const refused = { name: 'ProblemError', code: 'unauthorized' };

describe('the internal guard', () => {
  it('lets the shared admin token into the team’s routes, as the admin', async () => {
    const admitted = { context: { caller: { kind: 'admin', actor: 'admin' } }, jsonOnly: false };
    expect(await ask(['admin'], bearer(adminToken))).toEqual(admitted);
    expect(await ask(['admin', 'internal'], bearer(adminToken))).toEqual(admitted);
  });

  it('lets the internal secret into the services’ routes, as nobody', async () => {
    const admitted = { context: {}, jsonOnly: false };
    expect(await ask(['internal'], { 'x-internal-secret': secret })).toEqual(admitted);
    expect(await ask(['admin', 'internal'], { 'x-internal-secret': secret, ...bearer('x') })).toEqual(
      admitted,
    );
  });

  it.each<[string, RouteDefinition['auth'], IncomingHttpHeaders]>([
    ['nothing for a team’s route', ['admin'], {}],
    ['nothing for a service’s route', ['internal'], {}],
    ['another admin token', ['admin'], bearer(`${adminToken}a`)],
    ['another secret', ['internal'], { 'x-internal-secret': `${secret}s` }],
    ['the admin token as the secret', ['internal'], { 'x-internal-secret': adminToken }],
    ['the admin token for a service’s route', ['internal'], bearer(adminToken)],
    ['the secret for a team’s route', ['admin'], { 'x-internal-secret': secret }],
    ['the secret as a token', ['admin', 'internal'], bearer(secret)],
    ['the secret twice', ['internal'], { 'x-internal-secret': [secret, secret] }],
    ['both for a customer’s route', ['key'], { 'x-internal-secret': secret, ...bearer(adminToken) }],
  ])('refuses %s', async (_what, auth, headers) => {
    await expect(ask(auth, headers)).rejects.toMatchObject(refused);
  });

  it('accepts each of several while one takes the place of another, and not what joins them', async () => {
    const [old, next] = ['o'.repeat(32), 'n'.repeat(32)];
    const guard = createInternalGuard({ ADMIN_TOKEN: `${old},${next}`, INTERNAL_SECRET: `${next},${old}` });
    const open = (auth: string, headers: IncomingHttpHeaders): Promise<boolean> =>
      guard({ auth: [auth] } as unknown as RouteDefinition, {
        ...{ method: 'GET', params: {}, log: captureLogger().logger, headers },
      }).then(
        () => true,
        () => false,
      );
    for (const [value, opens] of [
      [old, true],
      [next, true],
      [`${old},${next}`, false],
      [`${next},${old}`, false],
    ] as const) {
      expect(await open('admin', bearer(value))).toBe(opens);
      expect(await open('internal', { 'x-internal-secret': value })).toBe(opens);
    }
  });

  it('takes no admin token where none is configured', async () => {
    const { INTERNAL_SECRET } = { INTERNAL_SECRET: secret };
    const guard = createInternalGuard({ INTERNAL_SECRET });
    const route = { auth: ['admin'] } as unknown as RouteDefinition;
    for (const token of ['', 'undefined', adminToken]) {
      const request = { method: 'GET', params: {}, log: captureLogger().logger, headers: bearer(token) };
      await expect(guard(route, request)).rejects.toMatchObject(refused);
    }
  });
});
