import { afterAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type RouteDefinition } from '@millrace/contract';
import { type Guard } from '@millrace/platform';
import { type ApiConfig } from '../config.ts';
import { type ApiDeps } from '../deps.ts';

// Watched, not replaced; before the code that imports it is loaded.
const compared = jest.spyOn(process.getBuiltinModule('node:crypto'), 'timingSafeEqual');
const { hashOf, newApiKey } = await import('@millrace/domain');
const { createCustomerGuard } = await import('./guard.ts');
const { createInternalGuard } = await import('./internal-guard.ts');

beforeEach(() => {
  compared.mockClear();
});
afterAll(() => {
  compared.mockRestore();
});

/** Whether a guard lets a request in, and what it compared in constant time. */
async function admit(
  guard: Guard,
  route: Partial<RouteDefinition>,
  headers: Record<string, string>,
): Promise<{ admitted: boolean; compared: unknown[][] }> {
  const request = { method: 'GET', params: {}, headers } as unknown as Parameters<Guard>[1];
  const admitted = await guard(route as RouteDefinition, request).then(
    () => true,
    () => false,
  );
  return { admitted, compared: compared.mock.calls.map((hashes) => [...hashes]) };
}

/** The same text but for its last letter: what a comparison letter by letter takes longest for. */
const almost = (text: string): string => text.slice(0, -1) + (text.endsWith('a') ? 'b' : 'a');

describe('in constant time, on hashes of one length, are compared', () => {
  const key = newApiKey(new Date());
  const row = {
    secretHash: key.secretHash,
    expiresAt: null,
    revokedAt: null,
    bannedAt: null,
    lastUsedAt: new Date(),
  };
  const secretOf = (value: string): string => value.slice(-43);
  const adminToken = 'admin-token-admin-token-admin-token';
  const internalSecret = 'internal-secret-internal-secret-int';

  it.each([
    ['right', key.value],
    ['nearly right', almost(key.value)],
  ])('an API key’s secret that is %s [AUT-013]', async (_what, value) => {
    const guard = createCustomerGuard({
      clock: { now: () => new Date() },
      config: {},
      store: { query: () => Promise.resolve({ rows: [{ ...row, scope: 'full' }], rowCount: 1 }) },
    } as unknown as ApiDeps);
    const { compared } = await admit(guard, { auth: ['key'] }, { authorization: `Bearer ${value}` });
    expect(compared).toEqual([[hashOf(secretOf(value)), key.secretHash]]);
  });

  const config = { ADMIN_TOKEN: adminToken, INTERNAL_SECRET: internalSecret } as ApiConfig;

  it.each([adminToken, almost(adminToken), 'x'])('the admin token, given %s [AUT-013]', async (token) => {
    const guard = createInternalGuard(config);
    const { admitted, compared } = await admit(
      guard,
      { auth: ['admin'] },
      { authorization: `Bearer ${token}` },
    );
    expect(admitted).toBe(token === adminToken);
    expect(compared).toEqual([[hashOf(token), hashOf(adminToken)]]);
  });

  it.each([internalSecret, almost(internalSecret), 'x'])(
    'the internal secret, given %s [AUT-013]',
    async (secret) => {
      const guard = createInternalGuard(config);
      const { admitted, compared } = await admit(
        guard,
        { auth: ['internal'] },
        { 'x-internal-secret': secret },
      );
      expect(admitted).toBe(secret === internalSecret);
      expect(compared).toEqual([[hashOf(secret), hashOf(internalSecret)]]);
    },
  );
});
