import { describe, expect, it } from '@jest/globals';
import { ConfigError } from '@millrace/platform';
import { checkSettings } from './check-settings.ts';

const problems = (env: NodeJS.ProcessEnv): string[] => {
  try {
    checkSettings(env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map((problem) => problem.split(':')[0] ?? '');
    throw error;
  }
};

describe('the settings of the embedded service', () => {
  it('are right when there are none', () => {
    expect(problems({})).toEqual([]);
  });

  it('are all looked at before anything starts, each problem named once', () => {
    const env = {
      ...{ LOG_LEVEL: 'loud', API_URL: 'ftp://x', TRUSTED_PROXIES: 'many', ENCODER_THREADS: '-1' },
      ...{ RECONCILER_LEASE_MS: '1', WEBHOOKS_IN_FLIGHT: '1', API_RATE_PER_MINUTE: '0' },
    };
    expect(problems(env).sort()).toEqual(Object.keys(env).sort());
  });

  it('that the data folder decides are not the environment’s', () => {
    expect(problems({ CURSOR_KEYS: 'short', ADMIN_TOKEN: 'short', INTERNAL_SECRET: 'short' })).toEqual([]);
  });
});
