import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { selectorsOf } from '../../scripts/prometheus/selectors.ts';
import { installation, readRules } from './rule-files.ts';
import { readRunbooks } from './runbooks.ts';

const dashboards = fileURLToPath(new URL('../../charts/millrace/dashboards/', import.meta.url));
const dashboard = z.object({
  title: z.string(),
  panels: z.array(
    z.object({
      title: z.string(),
      targets: z.array(z.object({ expr: z.string(), legendFormat: z.string() })),
    }),
  ),
});

export interface DashboardQuery {
  /** Dashboard and panel, for people. */
  where: string;
  /** As Prometheus takes it: what Grafana puts in is in. */
  expr: string;
  /** Labels that the legend names. */
  labels: string[];
}

/** Every query of every dashboard, of an installation; rates over a time that a whole test fits into. */
export const dashboardQueries = (namespace: string = installation.namespace): DashboardQuery[] =>
  readdirSync(dashboards).flatMap((file) => {
    const { title, panels } = dashboard.parse(JSON.parse(readFileSync(join(dashboards, file), 'utf8')));
    return panels.flatMap((panel) =>
      panel.targets.map(({ expr, legendFormat }) => ({
        where: `${title}: ${panel.title}`,
        expr: expr.replaceAll('$__rate_interval', '15m').replaceAll('$namespace', namespace),
        labels: [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label),
      })),
    );
  });

/** Every query of the runbooks. */
export const runbookQueries = (): { where: string; expr: string }[] =>
  readRunbooks().flatMap((page) => page.blocks('promql').map((expr) => ({ where: page.name, expr })));

/** Every selector of rules, dashboards and runbooks, once. */
export const allSelectors = (): string[] => [
  ...new Set(
    [
      ...readRules().map(({ expr }) => expr),
      ...[...dashboardQueries(), ...runbookQueries()].map(({ expr }) => expr),
    ].flatMap(selectorsOf),
  ),
];
