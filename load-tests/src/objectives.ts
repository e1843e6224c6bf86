/**
 * What a run must reach. Each objective counts events, good and bad, and asks for a share of good ones: the form of
 * the service's own promises (SLOs), and the only form here, so that every threshold means the same: of what was
 * measured, at least this share was good, and something was measured.
 */
interface Objective {
  /** The least share of good events. */
  atLeast: number;
  /** The service's promise that it stands for, by the name in its alerts; null for what makes a run worth reading. */
  slo: string | null;
  /** One event, and what makes it good. */
  meaning: string;
}

/** Bounds of the promises, in milliseconds. */
export const bounds = {
  /** A hold stops playback everywhere within this. The contract says about a minute. */
  holdMs: 30_000,
  /** The first attempt of a webhook starts within this. */
  webhookMs: 15_000,
  /** A video is ready within this many times its length … */
  readyLengths: 5,
  /** … of this at least: a clip of some seconds waits for machines, not for its length. */
  shortestMs: 60_000,
} as const;

/** How long a video of this length may take from its completed upload until it is ready, in milliseconds. */
export const readyWithinMs = (lengthSeconds: number): number =>
  bounds.readyLengths * Math.max(bounds.shortestMs, 1_000 * lengthSeconds);

export const objectives = {
  api_available: {
    ...{ atLeast: 0.999, slo: 'api' },
    meaning: 'A request to the API; good without a 5xx and with an answer at all.',
  },
  playback_available: {
    ...{ atLeast: 0.999, slo: 'playback' },
    meaning: 'A request to the CDN; good without a 5xx and with an answer at all.',
  },
  ready_in_time: {
    ...{ atLeast: 0.95, slo: 'ready' },
    meaning:
      'An uploaded video; good when it is ready within five times its length (of one minute at least) after its upload.',
  },
  hold_in_time: {
    ...{ atLeast: 0.999, slo: 'hold' },
    meaning: 'A hold; good when nothing of the video plays any more 30 s after it was placed.',
  },
  webhook_in_time: {
    ...{ atLeast: 0.99, slo: 'webhook' },
    meaning: 'An event for a healthy endpoint; good when its first attempt started within 15 s.',
  },
  webhook_delivered: {
    ...{ atLeast: 0.99, slo: null },
    meaning: 'An event for a healthy endpoint; good when it was delivered at the first attempt.',
  },
  api_expected: {
    ...{ atLeast: 0.999, slo: null },
    meaning: 'A request to the API; good when its status is the one it is made for. A 429 is not.',
  },
  playback_accepted: {
    ...{ atLeast: 0.999, slo: null },
    meaning:
      'A request of a viewer whose token is valid; good when the CDN did not refuse it. Tagged with `code`.',
  },
  playback_smooth: {
    ...{ atLeast: 0.99, slo: null },
    meaning: 'A segment; good when it came before the player had nothing left to play.',
  },
  hold_refused: {
    ...{ atLeast: 0.999, slo: null },
    meaning: 'A refusal of a held video; good with status 403 and code `video_unavailable`.',
  },
  completed: {
    ...{ atLeast: 0.99, slo: null },
    meaning: 'A run of a scenario; good when it got to its end.',
  },
} as const satisfies Record<string, Objective>;
export type ObjectiveName = keyof typeof objectives;

/** k6 Trends in milliseconds; nothing is judged by them. */
export const trends = ['first_segment', 'stall', 'ready', 'hold', 'lift', 'webhook_first_attempt'] as const;
export type TookName = (typeof trends)[number];

/** k6 Counters; nothing is judged by them. */
export const counters = ['quality_switches', 'seeks', 'token_renewals'] as const;
export type HappenedName = (typeof counters)[number];

/** Counts an objective's events: without any, k6 would call a latency good and a share unknown. */
export const eventsOf = (name: ObjectiveName): string => `${name}_events`;

/** k6's thresholds for these objectives. */
export function thresholdsFor(names: readonly ObjectiveName[]): Record<string, string[]> {
  const thresholds: Record<string, string[]> = {};
  for (const name of names) {
    thresholds[name] = [`rate>=${objectives[name].atLeast}`];
    thresholds[eventsOf(name)] = ['count>0'];
  }
  return thresholds;
}
