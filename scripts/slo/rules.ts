import { ownNamespace, withMatcher } from '../prometheus/selectors.ts';
import { type Slo } from './slos.ts';

interface Rule {
  record?: string;
  alert?: string;
  expr: string;
  for?: string;
  labels: Record<string, string>;
  annotations?: Record<string, string>;
}
export interface RuleGroups {
  groups: { name: string; interval?: string; rules: Rule[] }[];
}

/** Rates are taken over these; three days are the mean of hours, which costs a hundredth. */
const windows = ['5m', '30m', '1h', '6h'];
/** The chart puts in where the pages are. */
const runbooks = '$runbooks';
/** Fewer bad events than this in the long window wake nobody: on a quiet service one is a large share. */
const fewest = 5;
const secondsOf: Record<string, number> = { '1h': 3_600, '6h': 21_600, '3d': 259_200 };

/**
 * Recording rules of each promise, and alerts that fire when its budget of thirty days burns too fast, in a long
 * window and still in a short one (Google's SRE workbook, chapter 5): 2 % of it in an hour or 5 % in six pages
 * somebody, 10 % in three days opens a ticket.
 */
export const sloRules = (slos: readonly Slo[]): RuleGroups => ({
  // One group each: its rules are evaluated in their order, so that alerts read what was just recorded.
  groups: slos.map((slo) => ({
    name: `millrace-slo-${slo.name}`,
    interval: '30s',
    rules: [...recordings(slo), fast(slo), slow(slo)].map(ofOneInstallation),
  })),
});

/** Reads, and calls what it records or tells, of the namespace that the chart names. */
const ofOneInstallation = (rule: Rule): Rule => ({
  ...rule,
  expr: withMatcher(rule.expr, ownNamespace),
  labels: { ...rule.labels, namespace: '$namespace' },
});

function recordings({ name, bad, total }: Slo): Rule[] {
  const labels = { slo: name };
  const each = windows.flatMap((window) => [
    // Without bad events there may be no series of them; the total says whether there was anything at all.
    {
      record: `millrace:slo_bad:rate${window}`,
      expr: `(${bad(window)}) or 0 * (${total(window)})`,
      labels,
    },
    { record: `millrace:slo_total:rate${window}`, expr: total(window), labels },
  ]);
  const days = ['bad', 'total'].map((what) => ({
    record: `millrace:slo_${what}:rate3d`,
    expr: `avg_over_time(millrace:slo_${what}:rate1h{slo="${name}"}[3d])`,
    labels,
  }));
  const ratios = [...windows, '3d'].map((window) => ({
    record: `millrace:slo_bad:ratio${window}`,
    expr: `millrace:slo_bad:rate${window}{slo="${name}"} / millrace:slo_total:rate${window}{slo="${name}"}`,
    labels,
  }));
  return [...each, ...days, ...ratios];
}

const burns = ({ name, objective }: Slo, factor: number, long: string, short: string): string => {
  const limit = Number((factor * (1 - objective)).toPrecision(6));
  const select = `{slo="${name}"}`;
  return (
    `(millrace:slo_bad:ratio${long}${select} > ${limit} and millrace:slo_bad:ratio${short}${select} > ${limit} ` +
    `and ${secondsOf[long] ?? 0} * millrace:slo_bad:rate${long}${select} >= ${fewest})`
  );
};

const annotations = ({ promise, page, objective }: Slo, how: string): Record<string, string> => ({
  summary: `${promise.slice(0, -1)} for ${Number((objective * 100).toFixed(3))} % over 30 days; the budget burns ${how}.`,
  description: '{{ $value | humanizePercentage }} of the events in the long window were bad.',
  runbook_url: `${runbooks}/${page}`,
});

const fast = (slo: Slo): Rule => ({
  alert: `${slo.alert}Fast`,
  expr: [burns(slo, 14.4, '1h', '5m'), burns(slo, 6, '6h', '30m')].join('\nor\n'),
  for: '2m',
  labels: { severity: 'page' },
  annotations: annotations(slo, 'fast'),
});

const slow = (slo: Slo): Rule => ({
  alert: `${slo.alert}Slow`,
  expr: burns(slo, 1, '3d', '6h'),
  for: '15m',
  labels: { severity: 'ticket' },
  annotations: annotations(slo, 'steadily'),
});
