import { apiConfig } from '@millrace/api';
import { cdnConfig } from '@millrace/cdn';
import { encoderConfig } from '@millrace/encoder';
import { ConfigError, loadConfig } from '@millrace/platform';
import { reconcilerConfig } from '@millrace/reconciler';
import { webhooksConfig } from '@millrace/webhooks';
import { embeddedConfig } from '../config.ts';

const secret = 'x'.repeat(32);
const keySet = `k:${secret}`;
const url = 'http://127.0.0.1:1';

/** What the data folder decides, whatever the environment says; here only so that the rest can be read. */
const decided = {
  ...{ ENCODER_SCRATCH_DIR: '/', WEBHOOKS_WORKER: 'embedded', API_URL: url, CDN_URL: url, DOCS_URL: url },
  ...{ CURSOR_KEYS: keySet, PLAYBACK_KEYS: keySet, UPLOAD_TOKEN_KEYS: keySet, WEBHOOK_SECRET_KEYS: keySet },
  ...{ SIGN_IN_KEYS: keySet, PHONE_KEYS: keySet, ADMIN_TOKEN: secret, INTERNAL_SECRET: secret },
};

/**
 * Reads the settings of everything that will be started, before anything is: a bad value stops the start with every
 * problem listed.
 * @throws ConfigError
 */
export function checkSettings(env: NodeJS.ProcessEnv): void {
  const services = { ...env, ...decided };
  const problems = [
    ...problemsOf(() => loadConfig(embeddedConfig, env)),
    ...[apiConfig, cdnConfig, encoderConfig, reconcilerConfig, webhooksConfig].flatMap((schema) =>
      problemsOf(() => loadConfig(schema, services)),
    ),
  ];
  // Some settings are several services'.
  if (problems.length > 0) throw new ConfigError([...new Set(problems)]);
}

function problemsOf(read: () => unknown): readonly string[] {
  try {
    read();
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}
