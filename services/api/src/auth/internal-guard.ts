import { ProblemError } from '@millrace/contract';
import { hashOf, matchesHash } from '@millrace/domain';
import { type Guard } from '@millrace/platform';
import { type AdminCaller } from '../calls.ts';
import { type ApiConfig } from '../config.ts';
import { bearerOf } from './credentials.ts';

/** Who may call the team's and the services' own routes, on their own port (contract ADM-001 to ADM-004). */
export function createInternalGuard(config: Pick<ApiConfig, 'ADMIN_TOKEN' | 'INTERNAL_SECRET'>): Guard {
  const adminHash = config.ADMIN_TOKEN === undefined ? null : hashOf(config.ADMIN_TOKEN);
  const internalHash = hashOf(config.INTERNAL_SECRET);
  const admin: AdminCaller = { kind: 'admin', actor: 'admin' };
  return (route, { headers }) => {
    const bearer = bearerOf(headers);
    const secret = headers['x-internal-secret'];
    if (route.auth.includes('admin') && bearer !== null && adminHash !== null) {
      if (matchesHash(bearer, adminHash))
        return Promise.resolve({ context: { caller: admin }, jsonOnly: false });
    }
    if (route.auth.includes('internal') && typeof secret === 'string' && matchesHash(secret, internalHash)) {
      return Promise.resolve({ context: {}, jsonOnly: false });
    }
    return Promise.reject(new ProblemError('unauthorized'));
  };
}
