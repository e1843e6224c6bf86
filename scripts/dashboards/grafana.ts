import { ownNamespace, withMatcher } from '../prometheus/selectors.ts';

/** A query and what its lines are called: `{{label}}` of the result. */
export type Query = readonly [expr: string, legend: string];

export interface Panel {
  title: string;
  /** What to think of it. */
  about?: string;
  /** A unit of Grafana's: `s`, `bytes`, `reqps`, `percentunit`, `short`. */
  unit: string;
  queries: readonly Query[];
  /** The value now, as a number, beside its siblings; else lines over time. */
  now?: true;
}

export interface Dashboard {
  /** Of its file and address. */
  name: string;
  title: string;
  about: string;
  panels: readonly Panel[];
}

const columns = 24;
const sizes = { now: { w: 4, h: 4 }, lines: { w: 12, h: 8 } };
const datasource = { type: 'prometheus', uid: '${datasource}' };

/** Installations that the chosen Prometheus sees. */
const namespaces = {
  ...{ name: 'namespace', label: 'Namespace', type: 'query', datasource },
  query: { query: 'label_values(millrace_ready, namespace)', refId: 'namespaces' },
  ...{ definition: 'label_values(millrace_ready, namespace)', refresh: 2, sort: 1 },
};

/** A dashboard as Grafana imports it; reads whichever Prometheus its viewer chooses, and one installation there. */
export function grafanaDashboard({ name, title, about, panels }: Dashboard): object {
  return {
    uid: `millrace-${name}`,
    title: `Millrace / ${title}`,
    description: about,
    tags: ['millrace'],
    schemaVersion: 39,
    editable: false,
    timezone: 'utc',
    time: { from: 'now-6h', to: 'now' },
    refresh: '30s',
    templating: {
      list: [
        { name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus' },
        namespaces,
      ],
    },
    links: [{ title: 'Millrace', type: 'dashboards', tags: ['millrace'], asDropdown: true, keepTime: true }],
    panels: placed(panels).map(({ panel, gridPos }, index) => ({
      ...{ id: index + 1, title: panel.title, description: panel.about ?? '', gridPos, datasource },
      ...(panel.now ? stat(panel) : lines(panel)),
      targets: panel.queries.map(([expr, legendFormat], query) => ({
        ...{ refId: String.fromCharCode(65 + query), datasource, legendFormat },
        expr: withMatcher(expr, ownNamespace),
        ...(panel.now ? { instant: true } : { range: true }),
      })),
    })),
  };
}

/** Row by row, from left to right; a panel that does not fit begins a row. */
function placed(panels: readonly Panel[]) {
  let [x, y, rowHeight] = [0, 0, 0];
  return panels.map((panel) => {
    const { w, h } = panel.now ? sizes.now : sizes.lines;
    if (x + w > columns || (x > 0 && h !== rowHeight)) [x, y] = [0, y + rowHeight];
    const gridPos = { x, y, w, h };
    [x, rowHeight] = [x + w, h];
    return { panel, gridPos };
  });
}

const stat = ({ unit }: Panel): object => ({
  type: 'stat',
  fieldConfig: { defaults: { unit }, overrides: [] },
  options: { reduceOptions: { calcs: ['lastNotNull'] }, colorMode: 'value', graphMode: 'none' },
});

const lines = ({ unit }: Panel): object => ({
  type: 'timeseries',
  fieldConfig: {
    defaults: { unit, min: 0, custom: { fillOpacity: 10, showPoints: 'never' } },
    overrides: [],
  },
  options: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
});
