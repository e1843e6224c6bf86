import { type Dashboard } from './grafana.ts';
import { quantile, quantiles, rate } from './queries.ts';

export const playback: Dashboard = {
  name: 'playback',
  title: 'Playback',
  about: 'What viewers get from the CDN, and how sure it is of what it knows.',
  panels: [
    {
      ...{ title: 'Requests', unit: 'reqps' },
      queries: [[rate('millrace_cdn_requests_total', 'route'), '{{route}}']],
    },
    {
      ...{ title: 'Refusals by code', unit: 'reqps' },
      queries: [[rate('millrace_cdn_requests_total{code!=""}', 'code'), '{{code}}']],
    },
    {
      ...{ title: 'Answers by status', unit: 'reqps' },
      queries: [[rate('millrace_cdn_requests_total', 'status'), '{{status}}']],
    },
    {
      ...{ title: 'Time to answer (p99)', about: 'To the end of the answer: slow lines count.', unit: 's' },
      queries: [[quantile(0.99, 'millrace_cdn_request_duration_seconds', 'route'), '{{route}}']],
    },
    {
      ...{
        title: 'Unconfirmed state',
        about: 'At 20 s somebody is called; at 60 s playback stops.',
        unit: 's',
      },
      queries: [['max by (instance) (millrace_cdn_state_unconfirmed_seconds)', '{{instance}}']],
    },
    {
      ...{
        title: 'The two confirmations',
        about: 'The internal route is asked only when needed.',
        unit: 's',
      },
      queries: [
        ['max by (instance) (millrace_cdn_state_tail_age_seconds)', 'tail {{instance}}'],
        ['max by (instance) (millrace_cdn_state_record_age_seconds)', 'route {{instance}}'],
      ],
    },
    {
      ...{ title: 'From a hold to no playback', about: 'The promise is 30 s.', unit: 's' },
      queries: quantiles('millrace_hold_propagation_seconds', 0.5, 0.99),
    },
    {
      ...{ title: 'Reads of the state by the internal route', unit: 'ops' },
      queries: [[rate('millrace_cdn_state_reads_total', 'outcome'), '{{outcome}}']],
    },
    {
      ...{ title: 'Fetches from the bucket', unit: 'ops' },
      queries: [[rate('millrace_cdn_store_fetches_total', 'outcome'), '{{outcome}}']],
    },
    {
      ...{ title: 'Memory for answers', unit: 'bytes' },
      queries: [
        ['sum(millrace_cdn_block_cache_bytes)', 'blocks kept'],
        ['sum(millrace_cdn_unsent_bytes)', 'not taken by viewers'],
      ],
    },
    {
      ...{
        title: 'Watched time',
        about: 'Seconds of video counted in a second: about the viewers at once.',
        unit: 'short',
      },
      queries: [[rate('millrace_watched_seconds_total'), 'viewers']],
    },
    {
      ...{ title: 'Watched time given up', unit: 'ops' },
      queries: [[rate('millrace_cdn_usage_lost_total'), 'batches']],
    },
  ],
};
