import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { S3Client, GetBucketCorsCommand, PutBucketCorsCommand } from '@aws-sdk/client-s3';
import { silentLogger } from '@millrace/platform';
import { describeWith } from '../../../../dev/real-part.ts';
import { type S3Server, startS3Server } from '../../../../dev/s3/server.ts';
import { missingForS3 } from '../../../../dev/s3/versitygw.ts';
import { prepareBucket } from './bucket.ts';
import { type S3Connection } from './connection.ts';
import {
  type Answer,
  bare,
  refusal,
  type ScriptedS3,
  startScriptedS3,
  document,
} from './testing/scripted-s3.ts';

describeWith(missingForS3(), 'a bucket of versitygw', () => {
  let server: S3Server;
  let connection: S3Connection;
  beforeAll(async () => {
    server = await startS3Server();
  }, 900_000);
  afterAll(() => server.stop());
  beforeEach(() => {
    const { endpoint, region, credentials } = server;
    const bucket = `test-${randomBytes(6).toString('hex')}`;
    connection = { endpoint, region, credentials, bucket, pathStyle: true, logger: silentLogger };
  });

  it('is made and prepared once, and then left alone', async () => {
    expect(await prepareBucket(connection)).toEqual({
      bucket: 'created',
      cors: 'set',
      lifecycle: 'unsupported',
    });
    expect(await prepareBucket(connection)).toEqual({
      bucket: 'kept',
      cors: 'kept',
      lifecycle: 'unsupported',
    });
  });

  it('keeps the rules of others, and gets ours back when somebody spoiled it', async () => {
    await prepareBucket(connection);
    const client = new S3Client({ ...connection, forcePathStyle: true });
    const bucket = { Bucket: connection.bucket };
    const theirs = { ID: 'theirs', AllowedMethods: ['GET'], AllowedOrigins: ['https://example.com'] };
    const spoiled = {
      ID: 'millrace-part-uploads',
      AllowedMethods: ['PUT'],
      AllowedOrigins: ['https://one.example'],
    };
    await client.send(
      new PutBucketCorsCommand({ ...bucket, CORSConfiguration: { CORSRules: [theirs, spoiled] } }),
    );
    expect(await prepareBucket(connection)).toMatchObject({ cors: 'set' });
    const { CORSRules } = await client.send(new GetBucketCorsCommand(bucket));
    client.destroy();
    expect(CORSRules).toMatchObject([
      theirs,
      {
        ID: 'millrace-part-uploads',
        AllowedMethods: ['PUT'],
        AllowedOrigins: ['*'],
        ExposeHeaders: ['ETag'],
      },
    ]);
  });
});

describe('preparing a bucket', () => {
  let s3: ScriptedS3;
  /** What the bucket has, by the name of the rules in the query. */
  let kept: Record<string, string>;
  let put: (name: string, body: string) => Answer;
  const get = (name: string): Answer => {
    const absent = name === 'cors' ? 'NoSuchCORSConfiguration' : 'NoSuchLifecycleConfiguration';
    const held = kept[name];
    return held === undefined ? refusal(404, absent) : document(held);
  };
  beforeEach(async () => {
    s3 = await startScriptedS3();
    kept = {};
    put = (name, body) => {
      kept[name] = body;
      return bare(200);
    };
    s3.answers = [
      (response, call) => {
        const [method = '', name = ''] = call.line.split(/ .*\?|=/);
        const answer = method.startsWith('HEAD')
          ? bare(200)
          : method === 'PUT'
            ? put(name, call.body)
            : get(name);
        return answer(response, call);
      },
    ];
  });
  afterEach(() => s3.close());

  const theirs =
    '<?xml version="1.0"?><LifecycleConfiguration><Rule><ID>theirs</ID><Filter><Prefix>logs/</Prefix></Filter><Status>Enabled</Status>' +
    '<Expiration><Days>30</Days></Expiration></Rule></LifecycleConfiguration>';

  it('has forgotten uploads aborted where the server can do it, beside what others have set', async () => {
    kept['lifecycle'] = theirs;
    expect(await prepareBucket(s3.options)).toEqual({ bucket: 'kept', cors: 'set', lifecycle: 'set' });
    expect(kept['lifecycle']).toContain('<ID>theirs</ID>');
    expect(kept['lifecycle']).toContain(
      '<AbortIncompleteMultipartUpload><DaysAfterInitiation>9</DaysAfterInitiation></AbortIncompleteMultipartUpload>',
    );
    const calls = s3.calls.length;
    expect(await prepareBucket(s3.options)).toEqual({ bucket: 'kept', cors: 'kept', lifecycle: 'kept' });
    expect(s3.calls.slice(calls).some((call) => call.line.startsWith('PUT'))).toBe(false);
  });

  it('fails when the server takes a rule and forgets it', async () => {
    put = () => bare(200);
    await expect(prepareBucket(s3.options)).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('fails when it may not, instead of taking that for unsupported', async () => {
    put = () => refusal(403, 'AccessDenied');
    await expect(prepareBucket(s3.options)).rejects.toMatchObject({ code: 'unavailable' });
  });
});
