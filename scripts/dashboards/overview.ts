import { slos } from '../slo/slos.ts';
import { type Dashboard, type Panel } from './grafana.ts';
import { quantile, rate } from './queries.ts';

/** Others in the namespace have metrics of their process too, and every target has some `service`. */
const processes = `{service=~"api|cdn|encoder|reconciler|webhooks"}`;

const budgets = slos.map(({ name, objective, promise }): Panel => ({
  ...{ title: `Budget: ${name}`, about: `${promise} What is left of three days of its error budget.` },
  ...{ unit: 'percentunit', now: true },
  queries: [
    [`1 - millrace:slo_bad:ratio3d{slo="${name}"} / ${Number((1 - objective).toPrecision(6))}`, name],
  ],
}));

export const overview: Dashboard = {
  name: 'overview',
  title: 'Overview',
  about: 'Is Millrace well? From the promises down to the processes.',
  panels: [
    ...budgets,
    {
      ...{
        title: 'Reconcilers that lead',
        about: 'One. With none nothing reaches the bus.',
        unit: 'short',
        now: true,
      },
      queries: [['sum(millrace_reconciler_leading)', 'leading']],
    },
    {
      ...{ title: 'Requests to the API', unit: 'reqps' },
      queries: [[rate('millrace_http_requests_total', 'status'), '{{status}}']],
    },
    {
      ...{ title: 'Slowest routes of the API (p99)', unit: 's' },
      queries: [
        [
          `topk(5, ${quantile(0.99, 'millrace_http_request_duration_seconds{route=~"/v1/.*"}', 'route', 'method')})`,
          '{{method}} {{route}}',
        ],
      ],
    },
    {
      ...{ title: 'Requests to the CDN', unit: 'reqps' },
      queries: [[rate('millrace_cdn_requests_total', 'status'), '{{status}}']],
    },
    {
      ...{ title: 'Outbox', about: 'Parked rows were refused for good and want a look.', unit: 'short' },
      queries: [['max by (state) (millrace_outbox_rows)', '{{state}}']],
    },
    {
      ...{ title: 'From commit to the bus', unit: 's' },
      queries: [
        ['max(millrace_outbox_oldest_seconds)', 'oldest row'],
        [quantile(0.99, 'millrace_outbox_delay_seconds'), 'p99'],
      ],
    },
    {
      ...{ title: 'Messages', about: 'Dead ones cannot be read; failed ones come again.', unit: 'ops' },
      queries: [[rate('millrace_bus_consumed_total', 'topic', 'outcome'), '{{topic}} {{outcome}}']],
    },
    {
      ...{ title: 'Messages that wait', unit: 'short' },
      queries: [['sum by (topic) (millrace_bus_lag_messages)', '{{topic}}']],
    },
    {
      ...{ title: 'Connections to PostgreSQL', unit: 'short' },
      queries: [
        ['sum by (service) (millrace_db_connections)', '{{service}}'],
        ['sum by (service) (millrace_db_waiting)', '{{service}} waits'],
      ],
    },
    {
      ...{ title: 'Statements that PostgreSQL failed', unit: 'ops' },
      queries: [[rate('millrace_db_unavailable_total', 'service'), '{{service}}']],
    },
    {
      ...{ title: 'Loops that fail', unit: 'ops' },
      queries: [[rate('millrace_loop_failures_total', 'service', 'loop'), '{{service}} {{loop}}']],
    },
    {
      ...{ title: 'Mended by the reconciler', unit: 'ops' },
      queries: [[rate('millrace_reconcile_corrections_total', 'loop'), '{{loop}}']],
    },
    {
      ...{ title: 'Ready processes', unit: 'short' },
      queries: [['sum by (service) (millrace_ready)', '{{service}}']],
    },
    {
      ...{ title: 'Memory', unit: 'bytes' },
      queries: [[`sum by (service) (process_resident_memory_bytes${processes})`, '{{service}}']],
    },
    {
      ...{ title: 'Processors', unit: 'short' },
      queries: [[rate(`process_cpu_seconds_total${processes}`, 'service'), '{{service}}']],
    },
    {
      ...{ title: 'Event loop (p99)', unit: 's' },
      queries: [[`max by (service) (nodejs_eventloop_lag_p99_seconds${processes})`, '{{service}}']],
    },
  ],
};
