import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { quietPort } from '@millrace/platform';
import { z } from 'zod';
import { serverFolder, serverProcess, untilSaid } from '../server-process.ts';
import { prometheusPrograms } from './programs.ts';
import { installation, readGroups } from './rule-files.ts';

export interface PrometheusOptions {
  /** Where operations servers listen, `http://host:port`, by component of the chart. */
  targets: Readonly<Record<string, string>>;
}

/** A series with its value now. */
type Sample = z.output<typeof sample>;

export interface Prometheus {
  /** @throws Error with Prometheus's words for a query that it does not understand */
  query(expr: string): Promise<Sample[]>;
  /** Labels of the series that it has for a selector. */
  series(selector: string): Promise<Record<string, string>[]>;
  /** Rules as they were evaluated last. */
  rules(): Promise<
    { name: string; health: string; lastError?: string | undefined; state?: string | undefined }[]
  >;
  stop(): Promise<void>;
}

const host = '127.0.0.1';
const startMs = 60_000;
const readyWords = 'Server is ready to receive web requests';
/** Scrapes and rules, for tests that wait for them. */
const interval = '1s';

const labels = z.record(z.string(), z.string());
const sample = z.object({ metric: labels, value: z.tuple([z.number(), z.string()]) });
const instant = z.object({ resultType: z.string(), result: z.array(sample) });
const rules = z.object({
  groups: z.array(
    z.object({
      rules: z.array(
        z.object({
          name: z.string(),
          health: z.string(),
          lastError: z.string().optional(),
          state: z.string().optional(),
        }),
      ),
    }),
  ),
});

/**
 * Starts a real Prometheus on loopback with the chart's rules; resolves when it answers. It scrapes the targets each
 * second, and as the chart's ServiceMonitor does: their own labels win.
 */
export async function startPrometheus({ targets }: PrometheusOptions): Promise<Prometheus> {
  const { prometheus } = await prometheusPrograms();
  const { dataDir, remove } = await serverFolder(undefined, 'millrace-prometheus-');
  await mkdir(dataDir, { recursive: true });
  const port = await quietPort(host);
  const [config, ruleFile] = [join(dataDir, 'prometheus.json'), join(dataDir, 'rules.json')];
  const groups = readGroups().map((group) => ({ ...group, interval }));
  await writeFile(ruleFile, JSON.stringify({ groups }));
  await writeFile(config, JSON.stringify(configFor(targets, ruleFile)));
  const server = serverProcess({
    command: [
      prometheus,
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(dataDir, 'data')}`,
      `--web.listen-address=${host}:${port}`,
    ],
    detached: false,
    untilReady: (child) => untilSaid(child, { name: 'Prometheus', words: readyWords, withinMs: startMs }),
  });
  const ask = async (path: string, params: Record<string, string>): Promise<unknown> => {
    const response = await fetch(`http://${host}:${port}/api/v1/${path}`, {
      method: 'POST',
      body: new URLSearchParams(params),
    });
    const answer = (await response.json()) as { status: string; data?: unknown; error?: string };
    if (answer.status !== 'success') throw new Error(`Prometheus: ${answer.error ?? response.status}`);
    return answer.data;
  };
  try {
    await server.start();
  } catch (error) {
    await server.end('SIGKILL');
    await remove();
    throw error;
  }
  return {
    query: async (expr) => instant.parse(await ask('query', { query: expr })).result,
    series: async (selector) => z.array(labels).parse(await ask('series', { 'match[]': selector })),
    rules: async () => {
      const response = await fetch(`http://${host}:${port}/api/v1/rules`);
      const { data } = (await response.json()) as { data: unknown };
      return rules.parse(data).groups.flatMap((group) => group.rules);
    },
    stop: async () => {
      await server.end('SIGTERM');
      await remove();
    },
  };
}

const configFor = (targets: Readonly<Record<string, string>>, ruleFile: string): object => ({
  global: { scrape_interval: interval, evaluation_interval: interval },
  rule_files: [ruleFile],
  scrape_configs: [
    {
      ...{ job_name: installation.job, honor_labels: true, scrape_timeout: interval },
      static_configs: Object.entries(targets).map(([component, address]) => ({
        targets: [new URL(address).host],
        labels: { namespace: installation.namespace, app_kubernetes_io_component: component },
      })),
    },
  ],
});
