import { type Dashboard } from './grafana.ts';
import { quantile, quantiles, rate } from './queries.ts';

export const encode: Dashboard = {
  name: 'encode',
  title: 'Encode pipeline',
  about: 'From a completed upload to a video that plays.',
  panels: [
    {
      ...{ title: 'Oldest task that waits', about: 'What is paused does not count.', unit: 's' },
      queries: [['max by (class) (millrace_encode_oldest_queued_seconds)', '{{class}}']],
    },
    {
      ...{
        title: 'Work before the encoders',
        about: 'In CPU seconds; encoders are scaled by it.',
        unit: 's',
      },
      queries: [['max by (class) (millrace_encode_backlog_seconds)', '{{class}}']],
    },
    {
      ...{ title: 'Busy slots', unit: 'short' },
      queries: [['sum(millrace_encode_slots_busy)', 'busy']],
    },
    {
      ...{ title: 'Attempts by how they end', unit: 'ops' },
      queries: [[rate('millrace_encode_tasks_total', 'kind', 'result'), '{{kind}} {{result}}']],
    },
    {
      ...{ title: 'From upload to ready', unit: 's' },
      queries: quantiles('millrace_video_ready_seconds', 0.5, 0.95),
    },
    {
      ...{
        title: 'From upload to ready, in lengths of the video',
        about: 'The promise is 5.',
        unit: 'short',
      },
      queries: quantiles('millrace_video_ready_relative', 0.5, 0.95),
    },
    {
      ...{ title: 'How long tasks were due (p95)', unit: 's' },
      queries: [[quantile(0.95, 'millrace_encode_queue_seconds', 'kind'), '{{kind}}']],
    },
    {
      ...{ title: 'How long attempts take (p95)', unit: 's' },
      queries: [[quantile(0.95, 'millrace_encode_task_seconds', 'kind'), '{{kind}}']],
    },
    {
      ...{ title: 'Speed', about: 'Seconds of video in a second.', unit: 'short' },
      queries: quantiles('millrace_encode_speed', 0.05, 0.5),
    },
    {
      ...{
        title: 'Trouble',
        about: 'source: a bad file. The others are ours; failed ones are lost videos.',
        unit: 'ops',
      },
      queries: [[rate('millrace_encode_troubles_total', 'kind', 'outcome'), '{{kind}} {{outcome}}']],
    },
    {
      ...{ title: 'Permits that wait', unit: 'short' },
      queries: [['sum(millrace_bus_lag_messages{topic="millrace.encode.tasks"})', 'messages']],
    },
    {
      ...{ title: 'Mended', about: 'Lost leases, jobs put right, permits published again.', unit: 'ops' },
      queries: [[rate('millrace_reconcile_corrections_total{loop=~".*encode.*"}', 'loop'), '{{loop}}']],
    },
  ],
};
