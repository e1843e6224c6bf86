import { describe, expect, it } from '@jest/globals';
import { ConfigError, loadConfig } from '@millrace/platform';
import { z } from 'zod';
import { checkS3Settings, s3Settings } from './settings.ts';

const schema = z.object(s3Settings).superRefine(checkS3Settings);
const read = (env: Record<string, string>) => loadConfig(schema, { S3_BUCKET: 'millrace', ...env });
const problems = (env: Record<string, string>): readonly string[] => {
  try {
    read(env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
};

describe('S3 settings', () => {
  it('need a bucket alone: the rest is Amazon’s own, by what the machine offers', () => {
    expect(read({})).toEqual({ S3_BUCKET: 'millrace', S3_REGION: 'us-east-1', S3_PATH_STYLE: false });
    expect(problems({ S3_BUCKET: '' })).toHaveLength(1);
  });

  it('take endpoints of http and https, with or without a final slash', () => {
    const S3_ENDPOINT = 'https://s3.example.com/';
    expect(read({ S3_ENDPOINT, S3_PATH_STYLE: 'true' })).toMatchObject({
      S3_ENDPOINT: 'https://s3.example.com',
      S3_PATH_STYLE: true,
    });
    for (const wrong of ['s3.example.com', 'ftp://s3.example.com', '//s3.example.com']) {
      expect(problems({ S3_PUBLIC_ENDPOINT: wrong })).toEqual([
        'S3_PUBLIC_ENDPOINT: is not an http or https address',
      ]);
    }
  });

  it('take both halves of a key or none', () => {
    const key = { S3_ACCESS_KEY_ID: 'AKIAEXAMPLE', S3_SECRET_ACCESS_KEY: 'not-a-secret' };
    expect(read(key)).toMatchObject(key);
    for (const half of [{ S3_ACCESS_KEY_ID: 'AKIAEXAMPLE' }, { S3_SECRET_ACCESS_KEY: 'not-a-secret' }]) {
      expect(problems(half)).toEqual([expect.stringContaining('is needed with the other half of the key')]);
    }
  });
});
