import { readFileSync } from 'node:fs';
import { type Prepared } from '../src/scenario.ts';
import { type TestName } from '../src/tests.ts';
import { startRegistry } from './k6/metrics.ts';
import { crossed, type Samples } from './thresholds.ts';

type Iterate = (prepared: Prepared) => Promise<void>;

/** What an entry file has for k6; more of the options than this is k6's. */
interface Options {
  scenarios: Record<string, { executor: string; exec: string }>;
  thresholds: Record<string, string[]>;
  systemTags: string[];
}

export interface LoadedTest {
  options: Options;
  /** The functions that scenarios may name. */
  functions: Record<string, Iterate>;
  /**
   * Sets up, runs each scenario of the options so many times, so many of it at once, and tears down.
   * @returns what the thresholds and the measurements say
   */
  run(times: { iterations: number; atOnce: number }): Promise<{ crossed: string[]; samples: Samples }>;
}

/** Loads an entry file as k6 does, with its variables, and with modules of k6 that stand in for the real ones. */
export async function loadTest(name: TestName, environment: Record<string, string>): Promise<LoadedTest> {
  Object.assign(globalThis, { __ENV: environment, __VU: 0, open: readBytes });
  const samples = startRegistry();
  const { options, setup, teardown, ...functions } = (await import(`../${name}.ts`)) as {
    options: Options;
    setup: () => Promise<Prepared>;
    teardown: Iterate;
  } & Record<string, Iterate>;
  return {
    options,
    functions,
    run: async ({ iterations, atOnce }) => {
      // k6 carries it as JSON.
      const prepared = JSON.parse(JSON.stringify(await setup())) as Prepared;
      try {
        const work = Object.values(options.scenarios).map(async ({ exec }) => {
          let left = iterations;
          const user = async (): Promise<void> => {
            while (left-- > 0) await functions[exec]?.(prepared);
          };
          await Promise.all(Array.from({ length: atOnce }, user));
        });
        await Promise.all(work);
      } finally {
        await teardown(prepared);
      }
      return { crossed: crossed(options.thresholds, samples), samples };
    },
  };
}

function readBytes(path: string): ArrayBuffer {
  const bytes = readFileSync(path);
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
}
