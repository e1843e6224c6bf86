import { describe, expect, it } from '@jest/globals';
import { type SettingsInput, stackSettings } from './settings.ts';

const stand = {
  pid: 1,
  kill: () => Promise.resolve(),
  start: () => Promise.resolve(),
  stop: () => Promise.resolve(),
};
const input: SettingsInput = {
  ...{ host: '127.0.0.1', dataDir: '/data', internalPort: 4_000 },
  servers: {
    kafka: { ...stand, name: 'kafka', address: '127.0.0.1:9092' },
    s3: {
      ...{ ...stand, name: 's3', endpoint: 'http://127.0.0.1:7070', region: 'us-east-1' },
      credentials: { accessKeyId: 'id', secretAccessKey: 'secret' },
    },
    postgres: { ...stand, name: 'postgres', connectionString: 'postgres://millrace@127.0.0.1/millrace' },
  },
  common: { API_URL: 'http://127.0.0.1:1' },
  env: { ENCODER_PRESET: 'ultrafast', DATABASE_URL: 'postgres://somebody@else/here', NODE_ENV: 'production' },
};
const of = (service: string, name = service): NodeJS.ProcessEnv =>
  stackSettings(input).of({ name, service, port: 8_000, opsPort: 9_000 });

describe('settings of the stack', () => {
  it('give the CDN no database, also not the caller’s, and the API’s internal port instead', () => {
    expect(of('cdn')).toMatchObject({
      ...{ API_INTERNAL_URL: 'http://127.0.0.1:4000', KAFKA_BROKERS: '127.0.0.1:9092' },
      ...{ S3_ENDPOINT: 'http://127.0.0.1:7070', CDN_PORT: '8000', OPS_PORT: '9000' },
    });
    expect(of('cdn')['DATABASE_URL']).toBeUndefined();
  });

  it('decide over what the caller says of the same, and leave him the rest', () => {
    expect(of('encoder', 'encoder-2')).toMatchObject({
      ...{ DATABASE_URL: 'postgres://millrace@127.0.0.1/millrace', ENCODER_PRESET: 'ultrafast' },
      ...{
        ENCODER_WORKER: 'encoder-2',
        ENCODER_SCRATCH_DIR: '/data/scratch/encoder-2',
        NODE_ENV: 'development',
      },
    });
  });

  it('give the command line what it reaches the services by', () => {
    expect(Object.keys(stackSettings(input).commandLine)).toEqual(
      expect.arrayContaining(['DATABASE_URL', 'KAFKA_BROKERS', 'S3_BUCKET', 'S3_SECRET_ACCESS_KEY']),
    );
  });
});
