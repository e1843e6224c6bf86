import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import { kafkaSettings } from '@millrace/bus/kafka-settings';
import { s3Settings } from '@millrace/objects/s3-settings';
import { databaseSettings } from '@millrace/store';
import { settingProblems } from '@millrace/testing';
import { apiProcessConfig } from '../../services/api/src/config.ts';
import { cdnProcessConfig } from '../../services/cdn/src/config.ts';
import { encoderProcessConfig } from '../../services/encoder/src/config.ts';
import { reconcilerProcessConfig } from '../../services/reconciler/src/config.ts';
import { webhooksProcessConfig } from '../../services/webhooks/src/config.ts';
import { missingForClients } from '../kubernetes/clients.ts';
import { describeWith } from '../real-part.ts';
import { containerOf, type EnvVariable, type Workload, workloadsOf } from './objects.ts';
import { renderChart, valuesFiles } from './render.ts';

jest.setTimeout(120_000);

type Settings = Parameters<typeof settingProblems>[0];
type Fields = Readonly<Record<string, { safeParse(value: unknown): { success: boolean } }>>;

const services: Readonly<Record<string, Settings>> = {
  api: apiProcessConfig,
  internal: apiProcessConfig,
  cdn: cdnProcessConfig,
  encoder: encoderProcessConfig,
  reconciler: reconcilerProcessConfig,
  webhooks: webhooksProcessConfig,
};
/** The command line reads the part that a command needs. */
const commands: Readonly<Record<string, Fields>> = {
  migrate: databaseSettings,
  topics: kafkaSettings,
  bucket: s3Settings,
};
/** Read by the SDK of traces itself. */
const readElsewhere = /^OTEL_/;

const key = `k1:${'s'.repeat(40)}`;
/** What an operator would put into the Secrets. */
const secrets: Readonly<Record<string, string>> = {
  ...{ DATABASE_URL: 'postgres://u:p@pg/millrace', DATABASE_DIRECT_URL: 'postgres://u:p@pg/millrace' },
  ...{ CURSOR_KEYS: key, PLAYBACK_KEYS: key, UPLOAD_TOKEN_KEYS: key, WEBHOOK_SECRET_KEYS: key },
  ...{ SIGN_IN_KEYS: key, PHONE_KEYS: key, BILLING_CALLBACK_SECRETS: `provider:${'s'.repeat(40)}` },
  ...{ INTERNAL_SECRET: 's'.repeat(40), ADMIN_TOKEN: 's'.repeat(40), TWILIO_AUTH_TOKEN: 's' },
  ...{ SSO_GOOGLE_CLIENT_SECRET: 's', SSO_MICROSOFT_CLIENT_SECRET: 's' },
  ...{ S3_ACCESS_KEY_ID: 's', S3_SECRET_ACCESS_KEY: 's' },
  ...{ KAFKA_SASL_USERNAME: 's', KAFKA_SASL_PASSWORD: 's' },
  ...{ KAFKA_TLS_CA: 'pem', KAFKA_TLS_CERT: 'pem', KAFKA_TLS_KEY: 'pem' },
};

const valueOf = ({ name, value }: EnvVariable): string => {
  const known = value ?? secrets[name];
  if (known === undefined) throw new Error(`no operator would know what ${name} is`);
  return known;
};

/** What a workload runs with, what it reads of that, and what is wrong with it. */
function settingsOf(workload: Workload): {
  env: Record<string, string>;
  known: string[];
  problems: string[];
} {
  const component = workload.metadata.labels?.['app.kubernetes.io/component'] ?? '';
  const variables = containerOf(workload).env.map((each) => [each.name, valueOf(each)]);
  const env = Object.fromEntries(variables) as Record<string, string>;
  const schema = services[component.replace(/^encoder-.*/, 'encoder')];
  if (schema !== undefined)
    return { env, known: Object.keys(schema.shape), problems: settingProblems(schema, env) };
  const fields = Object.entries(commands[component] ?? {});
  if (fields.length === 0) throw new Error(`nobody reads the settings of ${component}`);
  const wrong = fields.filter(([name, field]) => !field.safeParse(env[name]).success);
  return {
    ...{ env, known: [...fields.map(([name]) => name), 'LOG_LEVEL'] },
    problems: wrong.map(([name]) => name),
  };
}

describeWith(missingForClients(), 'the settings that the chart gives', () => {
  describe.each([...valuesFiles.keys()])('with the values %s', (values) => {
    let workloads: Workload[];
    beforeAll(async () => {
      workloads = workloadsOf(await renderChart({ values }));
    });

    it('are what each service needs and takes', () => {
      for (const workload of workloads) {
        const { problems } = settingsOf(workload);
        expect({ of: workload.metadata.name, problems }).toEqual({
          of: workload.metadata.name,
          problems: [],
        });
      }
    });

    it('hold none that a service does not know', () => {
      for (const workload of workloads) {
        const { env, known } = settingsOf(workload);
        const unknown = Object.keys(env).filter((name) => !known.includes(name) && !readElsewhere.test(name));
        expect({ of: workload.metadata.name, unknown }).toEqual({ of: workload.metadata.name, unknown: [] });
      }
    });

    it('name every variable once', () => {
      for (const workload of workloads) {
        const names = containerOf(workload).env.map(({ name }) => name);
        expect(names).toEqual([...new Set(names)]);
      }
    });
  });
});
