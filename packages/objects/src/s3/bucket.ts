import {
  type CORSRule,
  CreateBucketCommand,
  GetBucketCorsCommand,
  GetBucketLifecycleConfigurationCommand,
  HeadBucketCommand,
  type LifecycleRule,
  PutBucketCorsCommand,
  PutBucketLifecycleConfigurationCommand,
  type S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { ObjectStoreError } from '../object-store.ts';
import { createClient, type S3Connection } from './connection.ts';
import { call } from './errors.ts';

/** What became of a rule of the bucket; `unsupported` where the server has no such rules. */
export type RuleOutcome = 'kept' | 'set' | 'unsupported';

export interface PreparedBucket {
  bucket: 'kept' | 'created';
  /** Lets browsers of any origin put parts and read their ETags (UPL-212). */
  cors: RuleOutcome;
  /** Aborts uploads that everybody forgot; the reconciler's sweep does the same, sooner. */
  lifecycle: RuleOutcome;
}

interface Place {
  client: S3Client;
  bucket: string;
}

const corsRule = {
  ID: 'millrace-part-uploads',
  AllowedMethods: ['PUT'],
  AllowedOrigins: ['*'],
  AllowedHeaders: ['*'],
  ExposeHeaders: ['ETag'],
  MaxAgeSeconds: 3_600,
} satisfies CORSRule;

const lifecycleRule = {
  ID: 'millrace-forgotten-uploads',
  Status: 'Enabled',
  Filter: { Prefix: '' },
  // An upload may be resumed for seven days, and be joined for a while after.
  AbortIncompleteMultipartUpload: { DaysAfterInitiation: 9 },
} satisfies LifecycleRule;

/**
 * Makes the bucket what Millrace needs; safe to run again, and beside rules of others, which it keeps. Needs more
 * rights than the services: run it where the bucket is administered.
 * @throws {ObjectStoreError} `unavailable`
 */
export async function prepareBucket(connection: S3Connection): Promise<PreparedBucket> {
  const client = createClient(connection);
  const place = { client, bucket: connection.bucket };
  try {
    const bucket = await call(() => createBucket(place));
    const cors = await call(() => setCors(place));
    return { bucket, cors, lifecycle: await call(() => setLifecycle(place)) };
  } finally {
    client.destroy();
  }
}

async function createBucket({ client, bucket }: Place): Promise<'kept' | 'created'> {
  const found = await client
    .send(new HeadBucketCommand({ Bucket: bucket }))
    .catch(unless('NotFound', 'NoSuchBucket'));
  if (found !== undefined) return 'kept';
  const created = await client
    .send(new CreateBucketCommand({ Bucket: bucket }))
    .catch(unless('BucketAlreadyOwnedByYou'));
  return created === undefined ? 'kept' : 'created';
}

async function setCors({ client, bucket }: Place): Promise<RuleOutcome> {
  const rules = async (): Promise<CORSRule[]> => {
    const answer = await client
      .send(new GetBucketCorsCommand({ Bucket: bucket }))
      .catch(unless('NoSuchCORSConfiguration'));
    return answer?.CORSRules ?? [];
  };
  return setRule({
    rules,
    isOurs: ({ ID }) => ID === corsRule.ID,
    isRight: (rule) =>
      (['AllowedMethods', 'AllowedOrigins', 'AllowedHeaders', 'ExposeHeaders'] as const).every(
        (list) => rule[list]?.join().toLowerCase() === corsRule[list].join().toLowerCase(),
      ),
    put: (others) =>
      client.send(
        new PutBucketCorsCommand({ Bucket: bucket, CORSConfiguration: { CORSRules: [...others, corsRule] } }),
      ),
  });
}

async function setLifecycle({ client, bucket }: Place): Promise<RuleOutcome> {
  const rules = async (): Promise<LifecycleRule[]> => {
    const answer = await client
      .send(new GetBucketLifecycleConfigurationCommand({ Bucket: bucket }))
      .catch(unless('NoSuchLifecycleConfiguration'));
    return answer?.Rules ?? [];
  };
  return setRule({
    rules,
    isOurs: ({ ID }) => ID === lifecycleRule.ID,
    isRight: ({ Status, Filter, AbortIncompleteMultipartUpload: abort }) =>
      Status === 'Enabled' &&
      !Filter?.Prefix &&
      abort?.DaysAfterInitiation === lifecycleRule.AbortIncompleteMultipartUpload.DaysAfterInitiation,
    put: (others) =>
      client.send(
        new PutBucketLifecycleConfigurationCommand({
          Bucket: bucket,
          LifecycleConfiguration: { Rules: [...others, lifecycleRule] },
        }),
      ),
  });
}

/** Puts our rule beside those of others unless it is there, and reads it back: some servers answer 200 and forget. */
async function setRule<Rule>(options: {
  rules: () => Promise<Rule[]>;
  isOurs: (rule: Rule) => boolean;
  /** Whether a rule, of whatever name, does what ours does. */
  isRight: (rule: Rule) => boolean;
  put: (others: Rule[]) => Promise<unknown>;
}): Promise<RuleOutcome> {
  const { rules, isOurs, isRight, put } = options;
  try {
    const before = await rules();
    if (before.some(isRight)) return 'kept';
    await put(before.filter((rule) => !isOurs(rule)));
    if ((await rules()).some(isRight)) return 'set';
    throw new ObjectStoreError('unavailable', 'the bucket did not keep a rule that it took');
  } catch (error) {
    if (isUnsupported(error)) return 'unsupported';
    throw error;
  }
}

const isUnsupported = (error: unknown): boolean =>
  error instanceof S3ServiceException &&
  (error.$metadata.httpStatusCode === 501 || ['NotImplemented', 'MethodNotAllowed'].includes(error.name));

/** For `catch`: takes the named errors for no answer. */
const unless =
  (...names: string[]) =>
  (error: unknown): undefined => {
    if (error instanceof S3ServiceException && names.includes(error.name)) return undefined;
    throw error;
  };
