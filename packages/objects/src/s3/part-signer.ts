import { type S3Client, UploadPartCommand } from '@aws-sdk/client-s3';
import { getSignedUrl, S3RequestPresigner } from '@aws-sdk/s3-request-presigner';
import { type Clock } from '@millrace/platform';
import { assertKey, assertPartNumber } from '../keys.ts';
import { type PartUrlInput } from '../object-store.ts';
import { call } from './errors.ts';

/** S3's longest life of a signature, in seconds. */
const longestLife = 7 * 24 * 3_600;

/**
 * Signs part URLs. Not by `getSignedUrl`, which runs the whole client for each URL: an upload has thousands, and
 * signing alone takes a fifth of the time.
 */
export function createPartSigner(
  client: S3Client,
  { bucket, clock }: { bucket: string; clock: Clock },
): (input: PartUrlInput) => Promise<string> {
  const presigner = new S3RequestPresigner({ ...client.config });
  let base: Promise<URL> | null = null;
  return async ({ key, uploadId, partNumber, expiresAt, sizeBytes }) => {
    assertKey(key);
    assertPartNumber(partNumber);
    const life = lifeOf(expiresAt, clock.now());
    base ??= baseUrl(client, bucket).catch((error: unknown) => {
      base = null;
      throw error;
    });
    const { protocol, hostname, port, pathname } = await call(() => base as Promise<URL>);
    const signed = await call(() =>
      presigner.presign(
        {
          method: 'PUT',
          ...{ protocol, hostname, path: pathname + key },
          ...(port === '' ? {} : { port: Number(port) }),
          query: { partNumber: String(partNumber), uploadId },
          // What is signed must be sent: a body of another length is refused.
          headers: sizeBytes === undefined ? {} : { 'content-length': String(sizeBytes) },
        },
        life,
      ),
    );
    const host = port === '' ? hostname : `${hostname}:${port}`;
    return `${protocol}//${host}${signed.path}?${queryText(signed.query ?? {})}`;
  };
}

/** A signature lives whole seconds from when it was made; of one that is over, both lie in the past. */
function lifeOf(expiresAt: Date, now: Date): { signingDate: Date; expiresIn: number } {
  const end = Math.floor(expiresAt.getTime() / 1_000);
  const begin = Math.min(Math.floor(now.getTime() / 1_000), end - 1);
  if (end - begin > longestLife) throw new RangeError(`a part URL lives ${longestLife} seconds at most`);
  return { signingDate: new Date(begin * 1_000), expiresIn: end - begin };
}

/** Where the objects of the bucket are, with a final slash: by the SDK's rules for regions and addressing. */
async function baseUrl(client: S3Client, bucket: string): Promise<URL> {
  const key = 'key';
  const command = new UploadPartCommand({ Bucket: bucket, Key: key, UploadId: 'upload', PartNumber: 1 });
  const url = new URL(await getSignedUrl(client, command));
  url.pathname = url.pathname.slice(0, -key.length);
  return url;
}

const queryText = (query: Readonly<Record<string, string | string[] | null>>): string =>
  Object.entries(query)
    .map(([name, value]) => `${encode(name)}=${encode(String(value))}`)
    .join('&');

/** RFC 3986 §2.3, as signatures want it. */
const encode = (text: string): string =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
