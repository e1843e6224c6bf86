/** What a run is told by environment variables. Times are in seconds there, as in names; here in milliseconds. */
export interface Settings {
  /** Base of the API, without a final slash. */
  apiUrl: string;
  projectId: string;
  /** A full-scope key of the project. */
  apiKey: string;
  /** A verified domain of the project, for which viewers' tokens are made. */
  domain: string;
  profile: Profile;
  /** Multiplies what the full profile does at once. */
  scale: number;
  /** Ready videos to use; empty: some are uploaded, and deleted in the end. */
  videoIds: readonly string[];
  /** Length of the file that is uploaded: for so many times that a video is waited for. */
  sourceSeconds: number;
  viewing: {
    watchMs: number;
    tokenSeconds: number;
    /** A token is renewed when it has this long to live. */
    renewBeforeMs: number;
    /** How much a player loads ahead. */
    bufferMs: number;
    /** One segment in so many is followed by a switch of quality, or a seek; 0 for never. */
    switchEvery: number;
    seekEvery: number;
  };
  /** Where holds are placed; null when the test places none. */
  admin: { url: string; token: string } | null;
  /** How long a held video must have been silent to be called stopped. */
  quietMs: number;
  /** Receivers of the storm; null when the test sends none. */
  webhooks: { url: string; slowUrl: string | null; deadUrl: string | null; events: number } | null;
}

export type Profile = 'smoke' | 'full';
/** What a test needs beside an API, a project and a domain. */
export type Need = 'admin' | 'webhooks';
export type Environment = Readonly<Record<string, string | undefined>>;

const smallest = { smoke: { watch: 20, quiet: 2, events: 10 }, full: { watch: 120, quiet: 10, events: 100 } };

/**
 * Reads the settings of a test. A variable that is set to nothing counts as unset.
 * @throws Error naming everything that is missing or wrong, without values: some are secret
 */
export function readSettings(environment: Environment, needs: readonly Need[]): Settings {
  const problems: string[] = [];
  const optional = (name: string): string | null => {
    const value = environment[name] ?? '';
    return value === '' ? null : value;
  };
  const required = (name: string): string => {
    const value = optional(name);
    if (value === null) problems.push(`${name} is not set`);
    return value ?? '';
  };
  const number = (name: string, { unset, least = 0 }: { unset: number; least?: number }): number => {
    const text = optional(name);
    const value = text === null ? unset : Number(text);
    if (!(value >= least && value < Infinity)) problems.push(`${name} is no number from ${least} on`);
    return value;
  };
  const base = (name: string): string => {
    const url = required(name);
    if (url !== '' && !/^https?:\/\/[^/]/.test(url)) problems.push(`${name} is no http or https address`);
    return url.replace(/\/+$/, '');
  };
  // Before it is ready nobody but who runs the test knows how long a film is.
  if (optional('SOURCE') !== null) required('SOURCE_SECONDS');
  const profile = optional('PROFILE') ?? 'smoke';
  if (profile !== 'smoke' && profile !== 'full') problems.push('PROFILE is neither smoke nor full');
  const usual = smallest[profile === 'full' ? 'full' : 'smoke'];
  const settings: Settings = {
    apiUrl: base('API_URL'),
    projectId: required('PROJECT_ID'),
    apiKey: required('API_KEY'),
    domain: required('DOMAIN'),
    profile: profile === 'full' ? 'full' : 'smoke',
    scale: number('SCALE', { unset: 1, least: 0.01 }),
    videoIds: (optional('VIDEO_IDS') ?? '').split(',').filter((id) => id !== ''),
    sourceSeconds: number('SOURCE_SECONDS', { unset: 60, least: 1 }),
    viewing: {
      watchMs: 1_000 * number('WATCH_SECONDS', { unset: usual.watch, least: 1 }),
      tokenSeconds: number('TOKEN_SECONDS', { unset: 300, least: 60 }),
      renewBeforeMs: 1_000 * number('RENEW_BEFORE_SECONDS', { unset: 30 }),
      bufferMs: 1_000 * number('BUFFER_SECONDS', { unset: 30, least: 1 }),
      switchEvery: number('SWITCH_EVERY', { unset: 8 }),
      seekEvery: number('SEEK_EVERY', { unset: 20 }),
    },
    admin: needs.includes('admin') ? { url: base('ADMIN_URL'), token: required('ADMIN_TOKEN') } : null,
    quietMs: 1_000 * number('QUIET_SECONDS', { unset: usual.quiet }),
    webhooks: needs.includes('webhooks')
      ? {
          url: required('WEBHOOK_URL'),
          slowUrl: optional('WEBHOOK_SLOW_URL'),
          deadUrl: optional('WEBHOOK_DEAD_URL'),
          events: number('EVENTS', { unset: usual.events, least: 1 }),
        }
      : null,
  };
  if (problems.length > 0) throw new Error(`settings: ${problems.join('; ')}`);
  return settings;
}
