// `import type`, which nobody can take for more: at run time there is no such module.
import type { Options } from 'k6/options';
import { readyWithinMs, thresholdsFor } from '../src/objectives.ts';
import { prepare, tidyUp } from '../src/prepare.ts';
import { iterate, type Prepared } from '../src/scenario.ts';
import { readSettings } from '../src/settings.ts';
import { type ScenarioName, scenarios, type TestName, tests } from '../src/tests.ts';
import { createK6World } from './k6-world.ts';

/** What an entry file exports to k6. */
interface K6Test {
  options: Options;
  setup: () => Promise<Prepared>;
  teardown: (prepared: Prepared) => Promise<void>;
  /** The function that a scenario's `exec` names. */
  run: (scenario: ScenarioName) => (prepared: Prepared) => Promise<void>;
}

/** From an entry file. */
const sample = '../e2e/media/sample.mp4';

/**
 * Makes a test of `tests` out of k6's environment variables.
 * @param open reads a file; called in the entry file, where paths start
 * @throws Error naming the settings that are missing or wrong
 */
export function createTest(name: TestName, open: (path: string) => ArrayBuffer): K6Test {
  const { needs, objectives, wants, uploads, loads } = tests[name];
  const settings = readSettings(__ENV, needs);
  const world = createK6World(settings, objectives);
  // Each virtual user has memory of its own; number 0 is the one that sets up.
  const source = uploads || __VU === 0 ? open(__ENV['SOURCE'] || sample) : null;
  const readyMs = readyWithinMs(settings.sourceSeconds);
  const planned = Object.entries(loads[settings.profile](settings.scale, readyMs));
  return {
    options: {
      // eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment -- k6 takes plain objects; its types call them classes
      scenarios: Object.fromEntries(planned.map(([exec, load]) => [exec, { ...load, exec }])),
      thresholds: thresholdsFor(objectives),
      // It waits for videos too.
      setupTimeout: `${Math.ceil(readyMs / 60_000) + 10}m`,
      teardownTimeout: '2m',
      userAgent: 'millrace-load-test',
      // Not `url`: addresses have tokens in them.
      systemTags: ['status', 'method', 'name', 'scenario', 'error_code', 'expected_response'],
      summaryTrendStats: ['med', 'p(95)', 'p(99)', 'max', 'count'],
    },
    setup: () => prepare(world, wants, source),
    teardown: (prepared) => tidyUp(world, prepared),
    run: (scenario) => (prepared) => iterate(world, scenarios[scenario], { prepared, source }),
  };
}
