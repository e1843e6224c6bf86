import { type Query } from './grafana.ts';

const labels = (...names: string[]): string => (names.length === 0 ? '' : ` by (${names.join(', ')})`);

/** Events a second. */
export const rate = (counter: string, ...by: string[]): string =>
  `sum${labels(...by)} (rate(${counter}[$__rate_interval]))`;

/** A line for each quantile of a histogram. */
export const quantiles = (histogram: string, ...of: number[]): Query[] =>
  of.map((share): Query => [quantile(share, histogram), `p${share * 100}`]);

/** A quantile of a histogram, which may come with a selector. */
export function quantile(share: number, histogram: string, ...by: string[]): string {
  const [, name = '', selector = ''] = /^(\w+)(.*)$/s.exec(histogram) ?? [];
  return `histogram_quantile(${share}, ${rate(`${name}_bucket${selector}`, 'le', ...by)})`;
}
