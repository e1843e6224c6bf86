import { installation } from './rule-files.ts';

/** Series as promtool writes them: what each holds, one sample at each step; a minute unless told. */
export interface Situation {
  series: Record<string, string>;
  at: string;
  step?: string;
}
/** What must make an alert fire, each for itself, and near misses that must not. */
export interface AlertCase {
  fires: Situation | [Situation, ...Situation[]];
  silent: Situation[];
}

const api = (status: number): string =>
  `millrace_http_requests_total{route="/v1/projects/{projectId}/videos",method="GET",status="${status}",instance="a"}`;
const checkout =
  'millrace_http_requests_total{route="/v1/billing/checkout",method="POST",status="503",instance="a"}';
const cdn = (status: number, code = ''): string =>
  `millrace_cdn_requests_total{route="segment",status="${status}",code="${code}",instance="a"}`;
const slow = (
  histogram: string,
  le: string,
  good: string,
  all: string,
  labels = 'instance="a"',
): Record<string, string> => ({
  [`${histogram}_bucket{le="${le}",${labels}}`]: good,
  [`${histogram}_bucket{le="+Inf",${labels}}`]: all,
  [`${histogram}_count{${labels}}`]: all,
});
const slowHolds = (le: string, good: string, all: string, proof = 'confirmed'): Record<string, string> =>
  slow('millrace_hold_propagation_seconds', le, good, all, `proof="${proof}",instance="a"`);
const ready = 'millrace_video_ready_relative';
const webhook = 'millrace_webhook_first_attempt_seconds';
const lost = 'millrace_encode_troubles_total{kind="infrastructure",outcome="failed",instance="a"}';

/** Three days of a steady state, then look. */
const days = (series: Record<string, string>): Situation => ({ series, at: '74h', step: '10m' });
/** Some of an hour and more. */
const burst = (series: Record<string, string>, at = '80m'): Situation => ({ series, at });

const slos: Record<string, AlertCase> = {
  MillraceApiErrorsFast: {
    // 2 % of the requests for more than an hour.
    fires: burst({ [api(200)]: '0+98x120', [api(500)]: '0+2x120' }),
    silent: [
      // Over: the short window has forgotten it.
      burst({ [api(200)]: '0+98x120', [api(500)]: '0+4x60 240x60' }, '105m'),
      // A large share of next to nothing.
      burst({ [api(200)]: '0+0.01x120', [api(500)]: '0+0.03x120' }),
      // Refusals are callers' mistakes, and checkout is closed by design.
      burst({ [api(200)]: '0+50x120', [api(400)]: '0+50x120', [checkout]: '0+50x120' }),
      burst({ [api(200)]: '0+99x120', [api(499)]: '0+50x120', [api(500)]: '0+0.5x120' }),
    ],
  },
  MillraceApiErrorsSlow: {
    fires: days({ [api(200)]: '0+998x450', [api(500)]: '0+2x450' }),
    silent: [
      days({ [api(200)]: '0+9995x450', [api(500)]: '0+5x450' }),
      days({ [api(200)]: '0+998x450', [api(500)]: '0+2x400 800x50' }),
    ],
  },
  MillracePlaybackErrorsFast: {
    fires: burst({ [cdn(200)]: '0+980x120', [cdn(503, 'state_unavailable')]: '0+20x120' }),
    silent: [
      burst({ [cdn(200)]: '0+980x120', [cdn(403, 'token_expired')]: '0+20x120' }),
      burst({ [cdn(200)]: '0+980x120', [cdn(503, 'state_unavailable')]: '0+0.9x120' }),
    ],
  },
  MillracePlaybackErrorsSlow: {
    fires: days({ [cdn(200)]: '0+998x450', [cdn(503, 'state_unavailable')]: '0+2x450' }),
    silent: [days({ [cdn(200)]: '0+9995x450', [cdn(503, 'state_unavailable')]: '0+5x450' })],
  },
  MillraceSlowToReadyFast: {
    // Three of four are late; in another story as many are lost to us.
    fires: burst(slow(ready, '5', '0+1x120', '0+4x120')),
    silent: [
      burst(slow(ready, '5', '0+3x120', '0+4x120')),
      burst({ ...slow(ready, '5', '0+4x120', '0+4x120'), [lost]: '0+0.1x120' }),
    ],
  },
  MillraceSlowToReadySlow: {
    fires: days({ ...slow(ready, '5', '0+10x450', '0+10x450'), [lost]: '0+1x450' }),
    silent: [days({ ...slow(ready, '5', '0+97x450', '0+98x450'), [lost]: '0+2x450' })],
  },
  MillraceSlowHoldsFast: {
    fires: burst(slowHolds('30', '0+9x120', '0+10x120')),
    silent: [
      burst(slowHolds('30', '0+10x120', '0+10x120')),
      // As Prometheus 3 writes the bound.
      burst(slowHolds('30.0', '0+10x120', '0+10x120')),
      // After a process vanished, proofs take a minute for an hour; the holds do not.
      burst({
        ...slowHolds('30', '0+10x120', '0+10x120'),
        ...slowHolds('30', '0x120', '0+10x120', 'waited'),
      }),
    ],
  },
  MillraceSlowHoldsSlow: {
    fires: days(slowHolds('30', '0+998x450', '0+1000x450')),
    silent: [days(slowHolds('30', '0+9995x450', '0+10000x450'))],
  },
  MillraceSlowWebhooksFast: {
    fires: burst(slow(webhook, '15', '0+8x120', '0+10x120')),
    silent: [burst(slow(webhook, '15', '0+95x120', '0+100x120'))],
  },
  MillraceSlowWebhooksSlow: {
    fires: days(slow(webhook, '15', '0+98x450', '0+100x450')),
    silent: [days(slow(webhook, '15', '0+995x450', '0+1000x450'))],
  },
};

const of = (series: string, fires: string, silent: string[], at = '20m'): AlertCase => ({
  fires: { series: { [series]: fires }, at },
  silent: silent.map((values) => ({ series: { [series]: values }, at })),
});
const target = { job: installation.job, instance: 'a' };
const on = (name: string, labels: Record<string, string> = {}): string =>
  `${name}{${Object.entries({ ...target, ...labels })
    .map(([key, value]) => `${key}="${value}"`)
    .join(',')}}`;
const drifted = (instance: string): string => on('millrace_usage_drift_total', { kind: 'stored', instance });
const probes = (canary: string, outcome: string, instance = 'a'): string =>
  on('millrace_probe_total', { canary, outcome, instance });
const fetches = (outcome: string): string =>
  on('millrace_cdn_store_fetches_total', { service: 'cdn', outcome });
const attempts = (outcome: string): string => on('millrace_webhook_attempts_total', { outcome });
const queued = (taskClass: string): string =>
  on('millrace_encode_oldest_queued_seconds', { class: taskClass });
const busy = on('millrace_encode_slots_busy');
const tasksDone = on('millrace_encode_tasks_total', { kind: 'video', result: 'done' });
const unconfirmed = on('millrace_cdn_state_unconfirmed_seconds');
const notApplied = (kind: string, reason: string): string =>
  on('millrace_kubernetes_objects_not_applied', { kind, reason });
const leading = (instance: string): string => on('millrace_reconciler_leading', { instance });

const due = (instance: string): string =>
  on('millrace_reconcile_due_timestamp_seconds', { loop: 'purge-objects', instance });
const unmended = (failures: string, inLastRun: string): Record<string, string> => ({
  [on('millrace_reconcile_failures_total', { loop: 'abort-orphan-uploads' })]: failures,
  [on('millrace_reconcile_unmended', { loop: 'abort-orphan-uploads' })]: inLastRun,
});
const component = (name: string): string =>
  on('millrace_ready', { app_kubernetes_io_component: name, instance: name });
/** What one process says of itself: whether it is ready, and whether it stops. */
const told = (instance: string, isReady: string, isStopping: string): Record<string, string> => ({
  [on('millrace_ready', { service: 'encoder', instance })]: isReady,
  [on('millrace_stopping', { service: 'encoder', instance })]: isStopping,
});
/** One process of each component, but some of which none is left. */
const without = (...gone: string[]): Record<string, string> =>
  Object.fromEntries(
    ['api', 'internal', 'cdn', 'webhooks', 'reconciler'].map((name) => [
      component(name),
      gone.includes(name) ? '1x5 stale' : '1x30',
    ]),
  );

export const alertCases: Record<string, AlertCase> = {
  ...slos,
  MillraceTargetDown: {
    // For hours, and one that never came up.
    fires: { series: { [on('up')]: '1x5 0x240' }, at: '200m' },
    silent: [
      // Somebody else's target.
      { series: { [on('up', { job: 'postgres' })]: '0x30' }, at: '15m' },
      { series: { [on('up')]: '1x10 0x4 1x10' }, at: '20m' },
    ],
  },
  MillraceServiceGone: {
    // The internal routes are of the same program.
    fires: { series: without('api'), at: '15m' },
    silent: [
      { series: without(), at: '15m' },
      // They are there: that they cannot work, MillraceNotReady says.
      { series: { ...without('cdn'), [component('cdn')]: '0x30' }, at: '15m' },
      { series: { ...without('webhooks'), [component('webhooks')]: '1x10 stale _ 1x30' }, at: '20m' },
    ],
  },
  MillraceNotReady: {
    // Beside one that stops.
    fires: { series: { ...told('a', '0x30', '0x30'), ...told('b', '0x30', '1x30') }, at: '20m' },
    silent: [
      { series: told('a', '1x30', '0x30'), at: '20m' },
      { series: told('a', '1x10 0x4 1x10', '0x30'), at: '20m' },
      // An encoder that is told to stop may be at a film for an hour.
      { series: told('a', '1x5 0x60', '0x5 1x60'), at: '60m' },
    ],
  },
  MillraceNoLeader: {
    fires: { series: { [leading('a')]: '0x30', [leading('b')]: '0x30' }, at: '10m' },
    silent: [{ series: { [leading('a')]: '0x30', [leading('b')]: '1x30' }, at: '10m' }],
  },
  MillraceLoopFailing: of(on('millrace_loop_failures_total', { loop: 'purge-objects' }), '0+1x30', [
    '0x30',
    '0x10 2x20',
  ]),
  MillraceReconcileFailing: {
    fires: [
      // Some in most runs.
      { series: unmended('0+12x30', '0 1 1x30'), at: '25m' },
      // In other runs than the last one: each looks at some of what there is.
      { series: unmended('0+12x30', '0x30'), at: '25m' },
      // Each hour, from the first run of a process on.
      { series: unmended('2x30', '2x30'), at: '20m' },
      { series: unmended('0x60 2x120', '0x60 2x120'), at: '80m' },
    ],
    silent: [
      { series: unmended('0x30', '0x30'), at: '25m' },
      // Once, with many, is a store that was away for a moment; of what runs each ten minutes too.
      { series: unmended('0x5 100x25', '0x5 100 0x25'), at: '25m' },
      { series: unmended('0x5 100x25', '0x5 100x10 0x15'), at: '25m' },
    ],
  },
  MillraceLoopOverdue: {
    // At an hour's loop an hour early, then it hangs; samples are Unix times of a world that begins at 0.
    fires: { series: { [due('a')]: '3600x120' }, at: '90m' },
    silent: [
      { series: { [due('a')]: '3600x120' }, at: '70m' },
      // Each minute.
      { series: { [due('a')]: '60+60x120' }, at: '90m' },
      // What one showed last who leads no longer.
      { series: { [due('a')]: '60x120', [due('b')]: '60+60x120' }, at: '90m' },
    ],
  },
  MillraceEventLoopBlocked: of(on('nodejs_eventloop_lag_p99_seconds', { service: 'cdn' }), '0.9x30', [
    '0.2x30',
    '0.2x15 0.9x4',
  ]),
  MillraceDatabaseUnavailable: of(on('millrace_db_unavailable_total'), '0+20x30', ['0x30', '0+1x30']),
  MillraceDatabasePoolExhausted: of(on('millrace_db_waiting', { service: 'api' }), '30x30', ['0x30', '5x30']),
  MillraceUsageDrift: {
    // In its first run, five minutes after the process of the leader before it has ended.
    fires: { series: { [drifted('a')]: '3x10 stale', [drifted('b')]: '_x9 0x5 1x30' }, at: '20m' },
    silent: [
      { series: { [drifted('a')]: '0x30' }, at: '20m' },
      { series: { [drifted('a')]: '3x10 stale', [drifted('b')]: '_x9 0x30' }, at: '20m' },
    ],
  },
  MillraceRateLimitsOpen: of(on('millrace_rate_uncounted_total'), '0+60x30', ['0+2x30']),
  MillraceOutboxStale: of(on('millrace_outbox_oldest_seconds'), '0 60 120 180 240 300x20', [
    '2x30',
    '0x19 40 2x9',
  ]),
  MillraceOutboxParked: of(on('millrace_outbox_rows', { state: 'parked' }), '0x15 1x10', ['0x30']),
  MillraceDeadLetters: {
    ...of(on('millrace_bus_consumed_total', { topic: 't', outcome: 'dead' }), '0x10 1x30', ['0x30']),
  },
  MillraceMessageStuck: {
    fires: {
      // Twice a minute, as often as the longest wait lets it be tried.
      series: { [on('millrace_bus_consumed_total', { topic: 't', outcome: 'failed' })]: '0+2x40' },
      at: '30m',
    },
    silent: [
      // The record failed over.
      {
        series: { [on('millrace_bus_consumed_total', { topic: 't', outcome: 'failed' })]: '0+20x5 100x40' },
        at: '30m',
      },
    ],
  },
  MillraceConsumerLag: {
    fires: {
      series: { [on('millrace_bus_lag_messages', { topic: 'millrace.video.events' })]: '5000x30' },
      at: '20m',
    },
    silent: [
      // Permits wait while videos do, without harm.
      {
        series: { [on('millrace_bus_lag_messages', { topic: 'millrace.encode.tasks' })]: '5000x30' },
        at: '20m',
      },
      {
        series: { [on('millrace_bus_lag_messages', { topic: 'millrace.video.events' })]: '900x30' },
        at: '20m',
      },
    ],
  },
  MillracePlaybackStateUnconfirmed: of(unconfirmed, '0x17 25x10', ['0x30', '15x30']),
  MillracePlaybackTailLost: of(on('millrace_cdn_state_tail_age_seconds'), '0x10 60x20', [
    '5x30',
    '5x19 30 5x9',
  ]),
  MillraceStateUnreadable: of(on('millrace_cdn_state_unreadable_total'), '0x10 1x20', ['0x30']),
  MillraceHoldNotEverywhere: {
    fires: {
      series: { [on('millrace_holds_spreading_oldest_seconds')]: '0 60 120x20', [leading('a')]: '1x30' },
      at: '15m',
    },
    silent: [
      {
        series: { [on('millrace_holds_spreading_oldest_seconds')]: '5x30', [leading('a')]: '1x30' },
        at: '15m',
      },
      // Proven by time, one after the other.
      {
        series: { [on('millrace_holds_spreading_oldest_seconds')]: '67x30', [leading('a')]: '1x30' },
        at: '15m',
      },
      // What one showed last who leads no longer.
      {
        series: {
          ...{ [on('millrace_holds_spreading_oldest_seconds')]: '120x30', [leading('a')]: '0x30' },
          [leading('b')]: '1x30',
        },
        at: '15m',
      },
    ],
  },
  MillraceSyntheticViewer: {
    // Each 30 s, with one leader after the other.
    fires: {
      series: {
        ...{ [probes('held', 'wrong')]: '0x10 2 4 6 6x20', [probes('held', 'ok')]: '0+2x10 20x30' },
        [probes('held', 'failed', 'b')]: '0x13 2 4 6 8x10',
      },
      at: '16m',
    },
    silent: [
      { series: { [probes('held', 'wrong')]: '0x30', [probes('held', 'ok')]: '0+2x30' }, at: '15m' },
      // One of each is not two of one, and a few that are lost say nothing.
      {
        series: { [probes('held', 'wrong')]: '0x10 3x20', [probes('playing', 'failed')]: '0x10 3x20' },
        at: '13m',
      },
    ],
  },
  MillracePlaybackRefusals: {
    fires: { series: { [cdn(200)]: '0+300x40', [cdn(403, 'token_invalid')]: '0+100x40' }, at: '30m' },
    silent: [
      { series: { [cdn(200)]: '0+3000x40', [cdn(403, 'token_invalid')]: '0+100x40' }, at: '30m' },
      // Nearly nobody is there.
      { series: { [cdn(200)]: '0+3x40', [cdn(403, 'token_invalid')]: '0+10x40' }, at: '30m' },
    ],
  },
  MillraceWatchedTimeLost: of(on('millrace_cdn_usage_lost_total'), '0x10 1x30', ['0x30']),
  MillraceObjectStoreFailing: {
    fires: { series: { [fetches('ok')]: '0+50x30', [fetches('failed')]: '0+10x30' }, at: '20m' },
    silent: [
      { series: { [fetches('ok')]: '0+500x30', [fetches('failed')]: '0+1x30' }, at: '20m' },
      // Viewers who leave take their fetches with them.
      {
        series: { [fetches('ok')]: '0+50x30', [fetches('aborted')]: '0+50x30', [fetches('failed')]: '0x30' },
        at: '20m',
      },
    ],
  },
  MillraceEncodingStuck: {
    fires: { series: { [queued('standard')]: '0+60x40', [tasksDone]: '9x40', [busy]: '0x40' }, at: '30m' },
    silent: [
      // Much to do, and it is being done.
      { series: { [queued('standard')]: '0+60x40', [tasksDone]: '0+1x40' }, at: '30m' },
      // All encoders are at long videos.
      { series: { [queued('standard')]: '0+60x40', [tasksDone]: '9x40', [busy]: '2x40' }, at: '30m' },
      // Nothing to do.
      { series: { [queued('standard')]: '0x40', [tasksDone]: '9x40' }, at: '30m' },
    ],
  },
  MillraceEncodeQueueOld: of(queued('large'), '0+60x60', ['0x60', '1200x60'], '50m'),
  MillraceEncodeTroubles: {
    fires: {
      series: { [on('millrace_encode_troubles_total', { kind: 'room', outcome: 'retry' })]: '0+1x40' },
      at: '30m',
    },
    silent: [
      // Bad files are their senders' trouble.
      {
        series: { [on('millrace_encode_troubles_total', { kind: 'source', outcome: 'failed' })]: '0+9x40' },
        at: '30m',
      },
      {
        series: { [on('millrace_encode_troubles_total', { kind: 'room', outcome: 'retry' })]: '0x20 2x20' },
        at: '30m',
      },
    ],
  },
  MillraceVideosLost: {
    fires: { series: { [lost]: '0x10 1x30' }, at: '20m' },
    silent: [
      { series: { [lost]: '0x30' }, at: '20m' },
      {
        series: { [on('millrace_encode_troubles_total', { kind: 'source', outcome: 'failed' })]: '0+1x40' },
        at: '20m',
      },
    ],
  },
  MillraceWebhookBacklog: of(on('millrace_webhook_oldest_due_seconds'), '0x5 400x30', [
    '20x30',
    '0x17 400x3',
  ]),
  MillraceWebhookSecretsUnreadable: {
    fires: {
      series: { [on('millrace_webhook_secrets_old_key', { readable: 'false' })]: '0x5 2x20' },
      at: '15m',
    },
    silent: [
      // Readable ones are sealed anew by themselves.
      { series: { [on('millrace_webhook_secrets_old_key', { readable: 'true' })]: '2x20' }, at: '15m' },
      { series: { [on('millrace_webhook_secrets_old_key', { readable: 'false' })]: '0x20' }, at: '15m' },
    ],
  },
  MillraceWebhooksFailing: {
    fires: { series: { [attempts('delivered')]: '0+5x60', [attempts('retried')]: '0+20x60' }, at: '50m' },
    silent: [
      { series: { [attempts('delivered')]: '0+20x60', [attempts('retried')]: '0+5x60' }, at: '50m' },
      { series: { [attempts('delivered')]: '0+0.1x60', [attempts('retried')]: '0+1x60' }, at: '50m' },
    ],
  },
  MillraceVideoHoldNotApplied: {
    fires: { series: { [notApplied('VideoHold', 'VideoNotFound')]: '0x5 1x20' }, at: '15m' },
    silent: [
      // One after the other, each in its turn.
      { series: { [notApplied('VideoHold', 'Pending')]: '0x20 9x3 0x20' }, at: '23m' },
      // Their videos play no more than held ones do.
      {
        series: {
          [notApplied('VideoHold', 'VideoDeleted')]: '1x30',
          [notApplied('VideoHold', 'VideoFailed')]: '1x30',
        },
        at: '20m',
      },
      { series: { [notApplied('Plan', 'Stale')]: '1x30' }, at: '20m' },
    ],
  },
  MillracePlanNotApplied: {
    fires: { series: { [notApplied('Plan', 'Superseded')]: '0x5 1x20' }, at: '15m' },
    silent: [
      { series: { [notApplied('Plan', 'Superseded')]: '0x12 1x20' }, at: '15m' },
      { series: { [notApplied('VideoHold', 'VideoNotFound')]: '1x30' }, at: '20m' },
    ],
  },
};
