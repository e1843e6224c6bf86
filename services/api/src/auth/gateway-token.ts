import { ProblemError } from '@millrace/contract';
import { createRemoteJWKSet, errors, jwtVerify } from 'jose';
import { type ApiConfig } from '../config.ts';

type GatewayConfig = Pick<ApiConfig, 'ADMIN_JWT_ISSUER' | 'ADMIN_JWT_AUDIENCE' | 'ADMIN_JWKS_URL'>;

/** Who an access gateway says is calling; null for what it did not sign. */
export type GatewayVerifier = (token: string) => Promise<{ subject: string } | null>;

/**
 * Verifies an access gateway's JWT (contract ADM-002): issuer, audience and expiry are required, RS256 or ES256 by
 * the gateway's published keys. Null without configuration.
 * @throws ProblemError `service_unavailable` when the keys cannot be had
 */
export function createGatewayVerifier(config: GatewayConfig): GatewayVerifier | null {
  const { ADMIN_JWT_ISSUER: issuer, ADMIN_JWT_AUDIENCE: audience, ADMIN_JWKS_URL: url } = config;
  if (issuer === undefined || audience === undefined || url === undefined) return null;
  const keys = createRemoteJWKSet(new URL(url), { timeoutDuration: 5_000 });
  return async (token) => {
    try {
      const { payload } = await jwtVerify(token, keys, {
        ...{ issuer, audience, algorithms: ['RS256', 'ES256'] },
        requiredClaims: ['iss', 'aud', 'exp'],
      });
      const email = payload['email'];
      return { subject: typeof email === 'string' ? email : (payload.sub ?? 'unnamed') };
    } catch (error) {
      const unasked = error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid;
      if (error instanceof errors.JOSEError && !unasked && error.code !== 'ERR_JOSE_GENERIC') return null;
      throw new ProblemError('service_unavailable', {
        detail: 'The access gateway’s keys cannot be had.',
        retryAfter: 5,
        cause: error,
      });
    }
  };
}
