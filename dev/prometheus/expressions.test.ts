import { describe, expect, it } from '@jest/globals';
import { ownNamespace, selectorsOf, withMatcher } from '../../scripts/prometheus/selectors.ts';
import { allSelectors, dashboardQueries } from './expressions.ts';
import { installation, readRules } from './rule-files.ts';

describe('selectors of an expression', () => {
  it.each([
    [
      'sum by (code) (rate(millrace_a_total{code!="",s=~"4.."}[5m])) > 1',
      ['millrace_a_total{code!="",s=~"4.."}'],
    ],
    ['millrace:slo_bad:rate1h{slo="api"} / millrace_b', ['millrace:slo_bad:rate1h{slo="api"}', 'millrace_b']],
    ['x{route!~"/auth/{provider}/.*"}', []],
    [
      'millrace_c{route!~"/auth/{p}/.*",q="\\"}"} + up == 0',
      ['millrace_c{route!~"/auth/{p}/.*",q="\\"}"}', 'up'],
    ],
    ['histogram_quantile(0.9, sum by (le) (rate(nodejs_d_bucket[1m])))', ['nodejs_d_bucket']],
  ])('%s', (expr, selectors) => {
    expect(selectorsOf(expr)).toEqual(selectors);
  });

  it('get one more matcher each', () => {
    expect(withMatcher('sum(rate(millrace_a{q="}",s=~"4.."}[5m])) / on () up > 1', ownNamespace)).toBe(
      'sum(rate(millrace_a{namespace="$namespace",q="}",s=~"4.."}[5m])) / on () up{namespace="$namespace"} > 1',
    );
  });

  it('name the installation in every rule and dashboard', () => {
    const expressions = [...readRules(), ...dashboardQueries()].map(({ expr }) => expr);
    const others = expressions
      .flatMap(selectorsOf)
      .filter((each) => !each.includes(`namespace="${installation.namespace}"`));
    expect(others).toEqual([]);
    for (const { labels } of readRules()) expect(labels?.['namespace']).toBe(installation.namespace);
  });

  it('are found in what the chart installs', () => {
    expect(allSelectors().length).toBeGreaterThan(60);
    expect(dashboardQueries().length).toBeGreaterThan(50);
  });
});
