import {
  type BodyOf,
  ProblemError,
  type Routes,
  uploadContentTypes,
  type UploadTokenResource,
} from '@millrace/contract';
import { largestUploadBytes, randomSegment, signUploadToken } from '@millrace/domain';
import { isVerifiedDomain, type Plan, type ProjectRow } from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';
import { normalizeHostname } from '../domains/hostname.ts';

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
    throw new ProblemError('domain_not_verified', {
      errors: [{ path: 'domain', message: 'is not verified on this project' }],
    });
  }
  const { contentType, title } = body;
  const expiresAt = new Date(clock.now().getTime() + body.expiresInSeconds * 1000);
  const maxSizeBytes = cappedSize(plan, body.maxSizeBytes);
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

/** The plan's maximum is the default, and never exceeded. */
function cappedSize(plan: Plan, wanted: number | undefined): number {
  const mostBytes = Math.min(plan.maxFileBytes, largestUploadBytes);
  if (wanted === undefined || wanted <= mostBytes) return wanted ?? mostBytes;
  const message = `is over the ${mostBytes} bytes that a file may have on the plan ${plan.name}`;
  throw new ProblemError('plan_limit_reached', {
    detail: `maxSizeBytes ${message}.`,
    errors: [{ path: 'maxSizeBytes', message }],
  });
}
