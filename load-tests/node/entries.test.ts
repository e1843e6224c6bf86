import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { thresholdsFor } from '../src/objectives.ts';
import { type TestName, tests } from '../src/tests.ts';
import { loadTest } from './k6-run.ts';

const environment = {
  ...{ API_URL: 'https://api.test', PROJECT_ID: 'prj_1', API_KEY: 'svk_1', DOMAIN: 'site.example' },
  ...{ ADMIN_URL: 'https://admin.test', ADMIN_TOKEN: 'secret', WEBHOOK_URL: 'https://hooks.example' },
  SOURCE: fileURLToPath(import.meta.url),
};

describe.each(Object.keys(tests) as TestName[])('the entry file %s', (name) => {
  it('gives k6 the scenarios and thresholds of its test, and functions for those of every profile', async () => {
    const { options, functions } = await loadTest(name, environment);
    const { objectives } = tests[name];
    const loads: Record<string, (scale: number) => Record<string, object>> = tests[name].loads;
    const smoke = Object.entries(loads['smoke']?.(1) ?? {}).map(([exec, load]) => [exec, { ...load, exec }]);
    expect(options.scenarios).toEqual(Object.fromEntries(smoke));
    expect(options.thresholds).toEqual(thresholdsFor(objectives));
    const wanted = [...Object.keys(loads['smoke']?.(1) ?? {}), ...Object.keys(loads['full']?.(1) ?? {})];
    expect(Object.keys(functions).sort()).toEqual([...new Set(wanted)].sort());
  });

  it('keeps tokens, which are in addresses, out of what k6 writes', async () => {
    const { options } = await loadTest(name, environment);
    expect(options.systemTags).toContain('name');
    expect(options.systemTags).not.toContain('url');
  });

  it('grows by SCALE in full, and has one of each at least', () => {
    const full: (scale: number) => object = tests[name].loads.full;
    expect(JSON.stringify(full(2))).not.toBe(JSON.stringify(full(1)));
    const numbers =
      JSON.stringify(full(0.001)).match(/"(rate|target|vus|maxVUs|preAllocatedVUs)":\d+/g) ?? [];
    expect(numbers.length).toBeGreaterThan(0);
    expect(numbers.filter((text) => text.endsWith(':0'))).toEqual([]);
  });
});
