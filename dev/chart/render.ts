import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { kubernetesClients } from '../kubernetes/clients.ts';
import { type AnyObject } from './objects.ts';

const run = promisify(execFile);

/** The chart’s folder. */
export const chart = fileURLToPath(new URL('../../charts/millrace', import.meta.url));

/** Paths of the values that the chart is tried with, by name: `small`, `large`, `keda`, `hpa`. */
export const valuesFiles: ReadonlyMap<string, string> = new Map(
  readdirSync(join(chart, 'ci'))
    .filter((file) => file.endsWith('-values.yaml'))
    .map((file) => [file.replace('-values.yaml', ''), join(chart, 'ci', file)]),
);

/**
 * Runs helm.
 * @returns what it prints
 * @throws Error with what it complains of
 */
export async function helm(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const { helm: program } = await kubernetesClients();
  const options = { maxBuffer: 64 * 1024 * 1024, env: { ...process.env, ...env } };
  const { stdout } = await run(program, args, options);
  return stdout;
}

export interface Rendering {
  /** One of `valuesFiles`. */
  values: string;
  /** Beside them, as of `--set-json`: `api.replicas=5`. */
  set?: readonly string[];
  release?: string;
}

/** The arguments that say so to `helm template`, `install` and `upgrade`. */
export function valuesArguments({ values, set = [] }: Omit<Rendering, 'release'>): string[] {
  const file = valuesFiles.get(values);
  if (file === undefined) throw new Error(`the chart has no values ${values}`);
  return ['--values', file, ...set.flatMap((each) => ['--set-json', each])];
}

/** Every object of the chart with these values, hooks too. */
export async function renderChart({ release = 'video', ...values }: Rendering): Promise<AnyObject[]> {
  const namespace = ['--namespace', 'media', '--kube-version', '1.37.2'];
  const text = await helm(['template', release, chart, ...namespace, ...valuesArguments(values)]);
  return parseAllDocuments(text)
    .map((document) => {
      const [error] = document.errors;
      if (error !== undefined) throw error;
      return document.toJS() as AnyObject | null;
    })
    .filter((object) => object !== null);
}
