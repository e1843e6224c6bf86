import { join } from 'node:path';
import { type StackServers } from './servers.ts';

/** What each process of the stack is told. */
export interface StackSettings {
  /** How the command line reaches the services. */
  commandLine: Record<string, string>;
  /** The environment of a service; `name` differs from `service` where there are several, and so does a CDN's port. */
  of(process: { name: string; service: string; port: number; opsPort: number }): NodeJS.ProcessEnv;
}

export interface SettingsInput {
  host: string;
  dataDir: string;
  servers: StackServers;
  /** The port of the API's internal routes. */
  internalPort: number;
  /** Of all services alike. */
  common: NodeJS.ProcessEnv;
  /** Of the caller: it may tune what is not decided here. */
  env: NodeJS.ProcessEnv;
}

const bucket = 'millrace';
/** On one machine encoders share its processors: each has one place, and the database few connections for it. */
const encoderDefaults = { ENCODER_SLOTS: '1', DATABASE_CONNECTIONS: '4' };

/** Works out the settings of every process. Nobody is told more than it needs: the CDN of no database. */
export function stackSettings(input: SettingsInput): StackSettings {
  const { host, dataDir, servers, internalPort, common, env } = input;
  const record = { DATABASE_URL: servers.postgres.connectionString };
  const kafka = { KAFKA_BROKERS: servers.kafka.address, KAFKA_REPLICATION_FACTOR: '1' };
  const s3 = {
    S3_BUCKET: bucket,
    S3_REGION: servers.s3.region,
    S3_ENDPOINT: servers.s3.endpoint,
    S3_PATH_STYLE: 'true',
    S3_ACCESS_KEY_ID: servers.s3.credentials.accessKeyId,
    S3_SECRET_ACCESS_KEY: servers.s3.credentials.secretAccessKey,
  };
  const callers = { ...env, NODE_ENV: 'development' };
  return {
    commandLine: { ...record, ...kafka, ...s3 },
    of: ({ name, service, port, opsPort }) => {
      const own = { ...common, OPS_HOST: host, OPS_PORT: String(opsPort) };
      switch (service) {
        case 'api':
          return { ...callers, ...own, ...record, ...s3 };
        case 'cdn': {
          const places = { CDN_PORT: String(port), API_INTERNAL_URL: `http://${host}:${internalPort}` };
          return { ...callers, ...own, ...places, ...kafka, ...s3, DATABASE_URL: undefined };
        }
        case 'encoder': {
          const places = { ENCODER_SCRATCH_DIR: join(dataDir, 'scratch', name), ENCODER_WORKER: name };
          return { ...encoderDefaults, ...callers, ...own, ...places, ...record, ...kafka, ...s3 };
        }
        case 'webhooks':
          return { ...callers, ...own, WEBHOOKS_WORKER: `stack-${name}`, ...record, ...kafka };
        default:
          return { ...callers, ...own, ...record, ...kafka, ...s3 };
      }
    },
  };
}
