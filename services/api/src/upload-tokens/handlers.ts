import {
  type BodyOf,
  ProblemError,
  type Routes,
  uploadContentTypes,
  type UploadTokenResource,
} from '@millrace/contract';
import { randomSegment, signUploadToken } from '@millrace/domain';
import { assertUploadRoom, isVerifiedDomain, type Plan, type ProjectRow } from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';
import { domainNotVerified, normalizeHostname } from '../domains/hostname.ts';
import { assertFileSize, mostFileBytes } from '../uploads/file-size.ts';

export const uploadTokenHandlers = (deps: FeatureDeps): Pick<ApiHandlers, 'createUploadToken'> => ({
  createUploadToken: ({ project, plan, body }) => createUploadToken(deps, { project, plan, body }),
});

/**
 * A token is its own record: nothing is stored until it starts an upload.
 * @throws ProblemError `upload_not_configured`, `domain_not_verified`, `plan_limit_reached`
 */
async function createUploadToken(
  { config, store, clock }: FeatureDeps,
  { project, plan, body }: { project: ProjectRow; plan: Plan; body: BodyOf<Routes['createUploadToken']> },
): Promise<UploadTokenResource> {
  const keys = config.UPLOAD_TOKEN_KEYS;
  const domain = normalizeHostname(body.domain, 'domain');
  if (keys === undefined) throw new ProblemError('upload_not_configured');
  if (!(await isVerifiedDomain(store, project.id, domain))) {
    throw domainNotVerified();
  }
  await store.transaction((tx) => assertUploadRoom(tx, project.accountId));
  const { contentType, title } = body;
  const expiresAt = new Date(clock.now().getTime() + body.expiresInSeconds * 1000);
  const { maxSizeBytes = mostFileBytes(plan) } = body;
  assertFileSize(plan, 'maxSizeBytes', maxSizeBytes);
  const token = signUploadToken(
    {
      ...{ tokenId: randomSegment(), accountId: project.accountId, projectId: project.id },
      ...{ domain, maxSizeBytes, expiresAt, contentType: contentType ?? null, title: title ?? null },
    },
    keys,
  );
  return {
    ...{ token, expiresAt: expiresAt.toISOString(), projectId: project.id, domain, maxSizeBytes },
    contentTypes: contentType === undefined ? [...uploadContentTypes] : [contentType],
    ...(title === undefined ? {} : { title }),
  };
}
