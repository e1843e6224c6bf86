import { type Dashboard } from './grafana.ts';
import { quantiles, rate } from './queries.ts';

export const webhooks: Dashboard = {
  name: 'webhooks',
  title: 'Webhooks',
  about: 'From an event to the answer of a customer’s endpoint.',
  panels: [
    {
      ...{ title: 'Attempts', unit: 'ops' },
      queries: [[rate('millrace_webhook_attempts_total', 'outcome'), '{{outcome}}']],
    },
    {
      ...{
        title: 'Share that is delivered',
        about: 'Endpoints that are down keep it below 1.',
        unit: 'percentunit',
      },
      queries: [
        [
          `${rate('millrace_webhook_attempts_total{outcome="delivered"}')} / ${rate('millrace_webhook_attempts_total')}`,
          'delivered',
        ],
      ],
    },
    {
      ...{ title: 'From due to the first attempt', about: 'The promise is 15 s.', unit: 's' },
      queries: quantiles('millrace_webhook_first_attempt_seconds', 0.5, 0.99),
    },
    {
      ...{ title: 'How long attempts take', unit: 's' },
      queries: quantiles('millrace_webhook_attempt_seconds', 0.5, 0.99),
    },
    {
      ...{ title: 'Oldest delivery that is due', about: 'Of endpoints that answer.', unit: 's' },
      queries: [['max(millrace_webhook_oldest_due_seconds)', 'oldest']],
    },
    {
      ...{ title: 'Endpoints that keep failing', unit: 'short' },
      queries: [['max(millrace_webhook_breakers_open)', 'endpoints']],
    },
    {
      ...{ title: 'Attempts under way', unit: 'short' },
      queries: [['sum by (instance) (millrace_webhook_in_flight)', '{{instance}}']],
    },
    {
      ...{ title: 'Events taken in', unit: 'ops' },
      queries: [
        [rate('millrace_bus_consumed_total{topic="millrace.video.events"}', 'outcome'), '{{outcome}}'],
      ],
    },
    {
      ...{ title: 'Events that wait', unit: 'short' },
      queries: [['sum(millrace_bus_lag_messages{topic="millrace.video.events"})', 'messages']],
    },
  ],
};
