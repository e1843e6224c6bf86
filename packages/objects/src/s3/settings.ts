import { flagText } from '@millrace/platform';
import { z } from 'zod';

const httpUrl = z
  .url({ protocol: /^https?$/, error: 'is not an http or https address' })
  .transform((url) => url.replace(/\/+$/, ''));

/** Settings of a process that uses an S3 API. */
export const s3Settings = {
  /** A bucket of Millrace's own. */
  S3_BUCKET: z.string().min(3).max(63),
  S3_REGION: z.string().min(1).default('us-east-1'),
  /** Unset: Amazon's own for the region. */
  S3_ENDPOINT: httpUrl.optional(),
  /** Where browsers and customers' servers reach it, when that is not `S3_ENDPOINT`: part URLs are signed for it. */
  S3_PUBLIC_ENDPOINT: httpUrl.optional(),
  /** `{endpoint}/{bucket}` instead of `{bucket}.{endpoint}`. */
  S3_PATH_STYLE: flagText,
  /** Both or none; none: what the machine offers (environment, web identity, instance role). */
  S3_ACCESS_KEY_ID: z.string().min(1).optional(),
  S3_SECRET_ACCESS_KEY: z.string().min(1).optional(),
};

export type S3Config = z.output<z.ZodObject<typeof s3Settings>>;

/** For `superRefine`: what the settings must be together. */
export function checkS3Settings(
  config: Pick<S3Config, 'S3_ACCESS_KEY_ID' | 'S3_SECRET_ACCESS_KEY'>,
  context: z.RefinementCtx,
): void {
  const names = ['S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY'] as const;
  const missing = names.filter((name) => config[name] === undefined);
  if (missing.length !== 1) return;
  for (const name of missing)
    context.addIssue({ code: 'custom', path: [name], message: 'is needed with the other half of the key' });
}
