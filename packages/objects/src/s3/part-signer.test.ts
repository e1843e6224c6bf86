import { afterAll, describe, expect, it } from '@jest/globals';
import { silentLogger } from '@millrace/platform';
import { createManualClock } from '@millrace/testing';
import { type ObjectStore } from '../object-store.ts';
import { createS3ObjectStore, type S3ObjectStoreOptions } from './s3-object-store.ts';

const now = new Date('2030-01-01T12:00:00.750Z');
const stores: ObjectStore[] = [];
const amazon: S3ObjectStoreOptions = {
  ...{ bucket: 'bucket', region: 'eu-west-1' },
  credentials: { accessKeyId: 'AKIAEXAMPLE', secretAccessKey: 'not-a-secret' },
  ...{ clock: createManualClock(now), logger: silentLogger },
};
const open = (options: Partial<S3ObjectStoreOptions> = {}): ObjectStore => {
  const store = createS3ObjectStore({ ...amazon, endpoint: 'https://s3.example.com', ...options });
  stores.push(store);
  return store;
};
afterAll(() => Promise.all(stores.map((store) => store.close())));

const part = { key: 'videos/source', uploadId: "u!'()*/+=", partNumber: 7 };
const expiresAt = new Date('2030-01-02T12:00:00.000Z');
const sign = async (store: ObjectStore, input: object = {}): Promise<URL> =>
  new URL(await store.presignPart({ ...part, expiresAt, ...input }));

describe('part URLs', () => {
  it.each<[string, Partial<S3ObjectStoreOptions>, string]>([
    ['of the bucket’s host', {}, 'https://bucket.s3.example.com/videos/source'],
    ['of the path style', { pathStyle: true }, 'https://s3.example.com/bucket/videos/source'],
    [
      'of a server with port and path',
      { pathStyle: true, endpoint: 'http://127.0.0.1:9000/s3' },
      'http://127.0.0.1:9000/s3/bucket/videos/source',
    ],
    [
      'of another public server',
      { publicEndpoint: 'https://uploads.example.org' },
      'https://bucket.uploads.example.org/videos/source',
    ],
  ])('are %s', async (_what, options, expected) => {
    const url = await sign(open(options));
    expect(url.origin + url.pathname).toBe(expected);
  });

  it('are Amazon’s own where no endpoint is told', async () => {
    const store = createS3ObjectStore(amazon);
    stores.push(store);
    expect((await sign(store)).origin).toBe('https://bucket.s3.eu-west-1.amazonaws.com');
  });

  it('want no header but Host, and no checksum', async () => {
    const { searchParams } = await sign(open());
    expect(searchParams.get('X-Amz-SignedHeaders')).toBe('host');
    expect([...searchParams.keys()].sort()).toEqual([
      'X-Amz-Algorithm',
      'X-Amz-Content-Sha256',
      'X-Amz-Credential',
      'X-Amz-Date',
      'X-Amz-Expires',
      'X-Amz-Signature',
      'X-Amz-SignedHeaders',
      'partNumber',
      'uploadId',
    ]);
    expect(searchParams.get('uploadId')).toBe(part.uploadId);
  });

  it('bind a size as a header, and have another signature for each size', async () => {
    const urls = await Promise.all([undefined, 0, 5, 6].map((sizeBytes) => sign(open(), { sizeBytes })));
    expect(urls.map((url) => url.searchParams.get('X-Amz-SignedHeaders'))).toEqual([
      'host',
      ...Array<string>(3).fill('content-length;host'),
    ]);
    expect(new Set(urls.map((url) => url.searchParams.get('X-Amz-Signature'))).size).toBe(4);
  });

  it('end in the second of their expiry [UPL-003]', async () => {
    for (const end of ['2030-01-01T12:00:01.000Z', '2030-01-02T11:59:59.999Z', '2030-01-08T12:00:00.000Z']) {
      expect(endOf(await sign(open(), { expiresAt: new Date(end) }))).toBe(`${end.slice(0, -4)}000Z`);
    }
  });

  it('that are over were signed in the past: a life of none is not valid', async () => {
    const url = await sign(open(), { expiresAt: new Date('2030-01-01T11:00:00Z') });
    expect(endOf(url)).toBe('2030-01-01T11:00:00.000Z');
    expect(url.searchParams.get('X-Amz-Expires')).toBe('1');
  });

  it('of more than seven days are refused here, not by S3 in a week', async () => {
    const tooLate = new Date('2030-01-08T12:00:01.000Z');
    await expect(sign(open(), { expiresAt: tooLate })).rejects.toBeInstanceOf(RangeError);
  });

  it('are for part numbers that S3 has', async () => {
    for (const partNumber of [0, 10_001, 1.5, NaN]) {
      await expect(sign(open(), { partNumber })).rejects.toMatchObject({ code: 'invalid_part' });
    }
  });
});

/** When a URL ends by what is in it. */
function endOf({ searchParams }: URL): string {
  const [, ...digits] =
    /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(searchParams.get('X-Amz-Date') ?? '') ?? [];
  const [year, month, day, hour, minute, second] = digits.map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const begin = Date.UTC(year, month - 1, day, hour, minute, second);
  return new Date(begin + 1_000 * Number(searchParams.get('X-Amz-Expires'))).toISOString();
}
