import { ProblemError } from '@millrace/contract';
import { hashOf, matchesHash } from '@millrace/domain';
import { type Guard } from '@millrace/platform';
import { type AdminCaller } from '../calls.ts';
import { type ApiConfig } from '../config.ts';
import { bearerOf } from './credentials.ts';
import { createGatewayVerifier } from './gateway-token.ts';

type GuardConfig = Pick<
  ApiConfig,
  'ADMIN_TOKEN' | 'INTERNAL_SECRET' | 'ADMIN_JWT_ISSUER' | 'ADMIN_JWT_AUDIENCE' | 'ADMIN_JWKS_URL'
>;

/** Who may call the team's and the services' own routes, on their own port (contract ADM-001 to ADM-004). */
export function createInternalGuard(config: GuardConfig): Guard {
  const adminHash = config.ADMIN_TOKEN === undefined ? null : hashOf(config.ADMIN_TOKEN);
  const internalHash = hashOf(config.INTERNAL_SECRET);
  const gateway = createGatewayVerifier(config);

  const adminOf = async (bearer: string): Promise<AdminCaller | null> => {
    if (adminHash !== null && matchesHash(bearer, adminHash)) return { kind: 'admin', actor: 'admin' };
    const verified = (await gateway?.(bearer)) ?? null;
    return verified === null ? null : { kind: 'admin', actor: verified.subject };
  };

  return async (route, { headers }) => {
    const bearer = bearerOf(headers);
    if (route.auth.includes('admin') && bearer !== null) {
      const caller = await adminOf(bearer);
      if (caller !== null) return { context: { caller }, jsonOnly: false };
    }
    const secret = headers['x-internal-secret'];
    if (route.auth.includes('internal') && typeof secret === 'string' && matchesHash(secret, internalHash)) {
      return { context: {}, jsonOnly: false };
    }
    throw new ProblemError('unauthorized');
  };
}
