import { describe, expect, it } from '@jest/globals';
import { allSelectors, dashboardQueries, selectorsOf } from './expressions.ts';

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

  it('are found in what the chart installs', () => {
    expect(allSelectors().length).toBeGreaterThan(60);
    expect(dashboardQueries().length).toBeGreaterThan(50);
  });
});
