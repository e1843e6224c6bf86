import { expect, it, jest } from '@jest/globals';
import { kafkaSettings } from '@millrace/bus/kafka-settings';
import { s3Settings } from '@millrace/objects/s3-settings';
import { databaseSettings } from '@millrace/store';
import { settingProblems } from '@millrace/testing';
import { z } from 'zod';
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

const services: Readonly<Record<string, z.ZodObject>> = {
  api: apiProcessConfig,
  internal: apiProcessConfig,
  cdn: cdnProcessConfig,
  encoder: encoderProcessConfig,
  reconciler: reconcilerProcessConfig,
  webhooks: webhooksProcessConfig,
  // The command line reads the part that a command needs.
  migrate: z.object(databaseSettings),
  topics: z.object(kafkaSettings),
  bucket: z.object(s3Settings),
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

/** What a workload runs with, and the schema by which it reads that. */
function settingsOf(workload: Workload): { schema: z.ZodObject; env: Record<string, string> } {
  const component = workload.metadata.labels?.['app.kubernetes.io/component'] ?? '';
  const schema = services[component.replace(/^encoder-.*/, 'encoder')];
  if (schema === undefined) throw new Error(`nobody reads the settings of ${component}`);
  const { env } = containerOf(workload);
  return { schema, env: Object.fromEntries(env.map((variable) => [variable.name, valueOf(variable)])) };
}

describeWith(missingForClients(), 'the settings that the chart gives', () => {
  it.each([...valuesFiles.keys()])(
    'are what each service needs and takes, with the values %s',
    async (values) => {
      for (const workload of workloadsOf(await renderChart({ values }))) {
        const { schema, env } = settingsOf(workload);
        const where = workload.metadata.name;
        expect({ where, problems: settingProblems(schema, env) }).toEqual({ where, problems: [] });
      }
    },
  );

  it.each([...valuesFiles.keys()])(
    'hold none that a service does not know, with the values %s',
    async (values) => {
      for (const workload of workloadsOf(await renderChart({ values }))) {
        const { schema, env } = settingsOf(workload);
        const known = new Set(Object.keys(schema.shape));
        const unknown = Object.keys(env).filter((name) => !known.has(name) && !readElsewhere.test(name));
        const expected = workload.kind === 'Job' ? ['LOG_LEVEL'] : [];
        expect({ where: workload.metadata.name, unknown }).toEqual({
          where: workload.metadata.name,
          unknown: expected,
        });
      }
    },
  );

  it('name every variable once', async () => {
    for (const values of valuesFiles.keys()) {
      for (const workload of workloadsOf(await renderChart({ values }))) {
        const names = containerOf(workload).env.map(({ name }) => name);
        expect(names).toEqual([...new Set(names)]);
      }
    }
  });
});
