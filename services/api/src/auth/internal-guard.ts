import { ProblemError } from '@millrace/contract';
import { hashOf, matchesHash, sharedSecretsOf } from '@millrace/domain';
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
  const isAdminToken = acceptorOf(config.ADMIN_TOKEN);
  const isInternalSecret = acceptorOf(config.INTERNAL_SECRET);
  const gateway = createGatewayVerifier(config);

  const adminOf = async (bearer: string): Promise<AdminCaller | null> => {
    if (isAdminToken(bearer)) return { kind: 'admin', actor: 'admin' };
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
    if (route.auth.includes('internal') && typeof secret === 'string' && isInternalSecret(secret)) {
      return { context: {}, jsonOnly: false };
    }
    throw new ProblemError('unauthorized');
  };
}

/** Accepts each of a setting's secrets, in the same time whichever it is; none when it is unset. */
function acceptorOf(setting: string | undefined): (presented: string) => boolean {
  if (setting === undefined) return () => false;
  const hashes = sharedSecretsOf(setting).map(hashOf);
  return (presented) => hashes.filter((hash) => matchesHash(presented, hash)).length > 0;
}
