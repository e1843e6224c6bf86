import { keySetText } from '@millrace/domain';
import { z } from 'zod';

/** Of the synthetic viewer; it is off while these are unset. */
export const probeSettings = {
  /** A video that plays, and one that the team holds for good. */
  PROBE_VIDEO_ID: z.string().optional(),
  PROBE_HELD_VIDEO_ID: z.string().optional(),
  /** The verified domain that it says it is on. */
  PROBE_DOMAIN: z.hostname().optional(),
  /** The address that players use: it goes by the public way. */
  CDN_URL: z.url({ protocol: /^https?$/ }).optional(),
  /** It signs its own tokens, as the API does: of a held video the API gives none. */
  PLAYBACK_KEYS: keySetText.optional(),
};

type ProbeConfig = z.output<z.ZodObject<typeof probeSettings>>;

const names = Object.keys(probeSettings) as (keyof ProbeConfig)[];

/** Wants all of them, or no canary. */
export function checkProbeSettings(config: ProbeConfig, context: z.RefinementCtx): void {
  if (config.PROBE_VIDEO_ID === undefined && config.PROBE_HELD_VIDEO_ID === undefined) return;
  for (const name of names) {
    if (config[name] !== undefined) continue;
    context.addIssue({ code: 'custom', path: [name], message: 'is needed for the synthetic viewer' });
  }
}

/** What it plays, or null when it is off. */
export function probeOf(config: ProbeConfig): Probe | null {
  const { PROBE_VIDEO_ID, PROBE_HELD_VIDEO_ID, PROBE_DOMAIN, CDN_URL, PLAYBACK_KEYS } = config;
  const isWhole = PROBE_VIDEO_ID && PROBE_HELD_VIDEO_ID && PROBE_DOMAIN && CDN_URL && PLAYBACK_KEYS;
  if (!isWhole) return null;
  return {
    canaries: { playing: PROBE_VIDEO_ID, held: PROBE_HELD_VIDEO_ID },
    ...{ domain: PROBE_DOMAIN, cdnUrl: CDN_URL.replace(/\/+$/, ''), keys: PLAYBACK_KEYS },
  };
}

export interface Probe {
  canaries: { playing: string; held: string };
  domain: string;
  cdnUrl: string;
  keys: z.output<typeof keySetText>;
}
