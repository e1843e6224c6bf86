import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@millrace/platform';
import { type RunningStack, startStack } from '../../../dev/stack/stack.ts';
import { attachStack, type Stack } from '../demo/stack.ts';

/** The distributed services, each a process of its own, started by the test that looks into them. */
export interface TestStack extends RunningStack {
  dataDir: string;
  readyFile: string;
  /** As somebody sees it who knows its ready file alone. */
  attached: Stack;
  /** The value of the first series of a process that begins so: `millrace_probe_ok{canary="held"`. Undefined: none does. */
  metric(name: string, series: string): Promise<number | undefined>;
}

/** Starts it in a folder of its own, which goes with it. @param env settings beside this process's own */
export async function startTestStack(
  options: { env?: NodeJS.ProcessEnv; cdns?: number } = {},
): Promise<TestStack> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-test-stack-'));
  const [dataDir, readyFile] = [join(folder, 'data'), join(folder, 'ready.json')];
  const over = new AbortController();
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    const stack = await startStack({
      ...options,
      ...{ dataDir, readyFile, signal: over.signal, logger: silentLogger, say: () => undefined },
      env: { ...process.env, NODE_ENV: undefined, ENCODER_PRESET: 'ultrafast', ...options.env },
    });
    const attached = await attachStack(readyFile, dataDir, over.signal);
    const stop = async (): Promise<void> => {
      over.abort();
      await stack.stop();
      await remove();
    };
    const metric: TestStack['metric'] = async (name, series) => {
      const text = await (await fetch(`${stack.ready().ops[name] ?? ''}/metrics`)).text();
      const line = text.split('\n').find((each) => each.startsWith(series));
      return line === undefined ? undefined : Number(line.split(' ')[1]);
    };
    return { ...stack, ...{ dataDir, readyFile, attached, metric, stop } };
  } catch (error) {
    await remove();
    throw error;
  }
}
