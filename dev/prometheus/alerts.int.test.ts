import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { describeWith } from '../real-part.ts';
import { withMatcher } from '../../scripts/prometheus/selectors.ts';
import { alertCases, type Situation } from './alert-cases.ts';
import { missingForPrometheus, prometheusPrograms } from './programs.ts';
import { installation, readGroups } from './rule-files.ts';

const firstUseMs = 300_000;
const groups = readGroups();
const alerts = groups.flatMap(({ rules }) => rules.flatMap(({ alert }) => alert ?? []));

describe('the cases of alerts', () => {
  it('are there for each, to fire and to stay silent', () => {
    expect(Object.keys(alertCases).sort()).toEqual([...alerts].sort());
    for (const { silent } of Object.values(alertCases)) expect(silent.length).toBeGreaterThan(0);
  });
});

describeWith(missingForPrometheus(), 'promtool', () => {
  let folder: string;
  let promtool: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-promtool-'));
    ({ promtool } = await prometheusPrograms());
  }, firstUseMs);
  afterAll(() => rm(folder, { recursive: true, force: true }));

  /** The group of an alert alone: promtool takes long for all of them. Their intervals are the test's. */
  const groupOf = (alert: string): object => {
    const group = groups.find(({ rules }) => rules.some((rule) => rule.alert === alert));
    return { name: group?.name, rules: group?.rules };
  };

  const seriesIn = (namespace: string, { series }: Situation): object[] =>
    Object.entries(series).map(([each, values]) => ({
      ...{ series: withMatcher(each, `namespace="${namespace}"`), values },
    }));

  /** In the same Prometheus is another installation, which is in the contrary situation. */
  const testOf = (
    alert: string,
    { own, neighbour }: { own: Situation; neighbour: Situation },
    firing: 0 | 1,
  ): object => ({
    interval: own.step ?? '1m',
    input_series: [...seriesIn(installation.namespace, own), ...seriesIn('elsewhere', neighbour)],
    promql_expr_test: [
      {
        expr: `clamp_max(count(ALERTS{alertname="${alert}",alertstate="firing",namespace="${installation.namespace}"}) or vector(0), 1)`,
        eval_time: own.at,
        exp_samples: [{ labels: '{}', value: firing }],
      },
    ],
  });

  /** What promtool says of a situation; null when the alert does there as told. */
  async function judge(
    alert: string,
    situation: { own: Situation; neighbour: Situation },
    firing: 0 | 1,
  ): Promise<string | null> {
    const rules = join(folder, `${alert}.rules.json`);
    const file = join(folder, `${alert}.test.json`);
    await writeFile(rules, JSON.stringify({ groups: [groupOf(alert)] }));
    const tests = [testOf(alert, situation, firing)];
    const interval = situation.own.step ?? '1m';
    await writeFile(file, JSON.stringify({ rule_files: [rules], evaluation_interval: interval, tests }));
    return promisify(execFile)(promtool, ['test', 'rules', file]).then(
      () => null,
      (error: unknown) => {
        const { stdout, stderr } = error as { stdout?: string; stderr?: string };
        return `${JSON.stringify(situation)}\n${stdout ?? ''}${stderr ?? ''}`;
      },
    );
  }

  it('takes every rule', async () => {
    const file = join(folder, 'all.rules.json');
    await writeFile(file, JSON.stringify({ groups }));
    await promisify(execFile)(promtool, ['check', 'rules', file]);
  });

  it.each(Object.entries(alertCases))('%s fires, and stays silent', async (alert, { fires, silent }) => {
    const [fire, ...fireToo] = Array.isArray(fires) ? fires : [fires];
    const [first = fire] = silent;
    for (const own of [fire, ...fireToo]) expect(await judge(alert, { own, neighbour: first }, 1)).toBeNull();
    for (const own of silent) expect(await judge(alert, { own, neighbour: fire }, 0)).toBeNull();
  });
});
