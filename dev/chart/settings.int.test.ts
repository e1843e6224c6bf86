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
import { containerOf, type Workload, workloadsOf } from './objects.ts';
import { exampleEnvironment } from './example-secrets.ts';
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
/** Read by the SDK of traces itself, and by Node.js. */
const readElsewhere = /^OTEL_|^NODE_EXTRA_CA_CERTS$/;

/** What a workload runs with, what it reads of that, and what is wrong with it. */
function settingsOf(workload: Workload): {
  env: Record<string, string>;
  known: string[];
  problems: string[];
} {
  const component = workload.metadata.labels?.['app.kubernetes.io/component'] ?? '';
  const env = exampleEnvironment(workload);
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
