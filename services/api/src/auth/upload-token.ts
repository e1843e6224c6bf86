import { ProblemError } from '@millrace/contract';
import { isExpired, isOriginOf, type UploadClaims, verifyUploadToken } from '@millrace/domain';
import { type Admission, type GuardedRequest } from '@millrace/platform';
import { findProjectHolder, findUploadOfToken, isVerifiedDomain } from '@millrace/store';
import { type ProjectContext } from '../calls.ts';
import { type ApiDeps } from '../deps.ts';
import { refuseBanned } from './bans.ts';

type TokenDeps = Pick<ApiDeps, 'config' | 'store' | 'clock'>;

/** The claims of a genuine upload token, expired or not; null for every other credential. */
export const uploadClaimsOf = ({ config }: Pick<TokenDeps, 'config'>, bearer: string): UploadClaims | null =>
  config.UPLOAD_TOKEN_KEYS === undefined ? null : verifyUploadToken(bearer, config.UPLOAD_TOKEN_KEYS);

/**
 * A browser with an upload token (contract UPT-210 to UPT-223): it starts one upload before the token's expiry and
 * completes that upload as long as it is open, from a page of the token's domain.
 *
 * @throws ProblemError `unauthorized`, `account_banned`, `banned`, `not_found`, `origin_missing`, `domain_mismatch`,
 *   `domain_not_verified`
 */
export async function admitUploadToken(
  { store, clock }: TokenDeps,
  { params, headers }: GuardedRequest,
  claims: UploadClaims,
): Promise<Admission> {
  const { tokenId, projectId, accountId, domain } = claims;
  const { uploadId } = params;
  const completes = uploadId !== undefined;
  const own = completes && (await findUploadOfToken(store, tokenId))?.id === uploadId;
  if (!own && isExpired(claims, clock.now())) throw new ProblemError('unauthorized');
  const holder = await findProjectHolder(store, projectId);
  if (holder === null) throw new ProblemError('unauthorized');
  refuseBanned(holder);
  if (params['projectId'] !== projectId || (completes && !own)) throw new ProblemError('not_found');
  // Never the Referer: browsers send an Origin with every POST.
  if (headers.origin === undefined) throw new ProblemError('origin_missing');
  if (!isOriginOf(headers.origin, domain)) throw new ProblemError('domain_mismatch');
  if (!completes && !(await isVerifiedDomain(store, projectId, domain))) {
    throw new ProblemError('domain_not_verified');
  }
  const context: ProjectContext = {
    caller: { kind: 'upload_token', accountId, claims },
    project: holder.project,
    plan: holder.plan,
  };
  return { context, jsonOnly: false };
}
