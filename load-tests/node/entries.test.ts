import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { thresholdsFor } from '../src/objectives.ts';
import { type Profile } from '../src/settings.ts';
import { type TestName, tests } from '../src/tests.ts';
import { loadTest } from './k6-run.ts';

const environment = {
  ...{ API_URL: 'https://api.test', PROJECT_ID: 'prj_1', API_KEY: 'svk_1', DOMAIN: 'site.example' },
  ...{ ADMIN_URL: 'https://admin.test', ADMIN_TOKEN: 'secret', WEBHOOK_URL: 'https://hooks.example' },
  ...{ SOURCE: fileURLToPath(import.meta.url), SOURCE_SECONDS: '60' },
};
/** What such a video may take. */
const readyMs = 300_000;

describe.each(Object.keys(tests) as TestName[])('the entry file %s', (name) => {
  it('gives k6 the scenarios and thresholds of its test, and functions for those of every profile', async () => {
    const { options, functions } = await loadTest(name, environment);
    const { objectives } = tests[name];
    const { smoke, full }: Record<Profile, (scale: number, readyMs: number) => object> = tests[name].loads;
    const loads = Object.entries(smoke(1, readyMs)) as [string, object][];
    expect(options.scenarios).toEqual(
      Object.fromEntries(loads.map(([exec, load]) => [exec, { ...load, exec }])),
    );
    expect(options.thresholds).toEqual(thresholdsFor(objectives));
    const wanted = [...Object.keys(smoke(1, readyMs)), ...Object.keys(full(1, readyMs))];
    expect(Object.keys(functions).sort()).toEqual([...new Set(wanted)].sort());
  });

  it('keeps tokens, which are in addresses, out of what k6 writes', async () => {
    const { options } = await loadTest(name, environment);
    expect(options.systemTags).toContain('name');
    expect(options.systemTags).not.toContain('url');
  });

  it('grows by SCALE in full, and has one of each at least', () => {
    const full: (scale: number, readyMs: number) => object = tests[name].loads.full;
    expect(JSON.stringify(full(2, readyMs))).not.toBe(JSON.stringify(full(1, readyMs)));
    const numbers =
      JSON.stringify(full(0.001, readyMs)).match(/"(rate|target|vus|maxVUs|preAllocatedVUs)":\d+/g) ?? [];
    expect(numbers.length).toBeGreaterThan(0);
    expect(numbers.filter((text) => text.endsWith(':0'))).toEqual([]);
  });
});

describe('uploads of a long film', () => {
  it('are waited for in every profile, as many as are under way then', () => {
    const { smoke, full } = tests.upload.loads;
    expect(smoke(1, 3_000_000)).toMatchObject({ upload: { maxDuration: '6300s' } });
    expect(full(1, 3_000_000)).toMatchObject({ upload: { gracefulStop: '3300s', maxVUs: 330 } });
  });
});
