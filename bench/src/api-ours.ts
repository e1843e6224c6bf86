/** The API as it ships: every check, rate limits over all replicas, metrics, and its log as JSON lines. */
import { apiConfig, createApi } from '@millrace/api';
import { createLogger, createMetrics, systemClock } from '@millrace/platform';
import { type ObjectStore } from '@millrace/objects';
import { createDatabase } from '@millrace/store';
import { serveSide } from './api-side.ts';

const secret = '0123456789abcdef0123456789abcdef';

await serveSide(async (connectionString) => {
  const logger = createLogger({ service: 'api' });
  const metrics = createMetrics({ service: 'api', process: true });
  const store = createDatabase({ connectionString, logger, metrics });
  const api = createApi({
    config: apiConfig.parse({
      ...{ API_URL: 'http://127.0.0.1', CDN_URL: 'http://127.0.0.1', DOCS_URL: 'http://127.0.0.1' },
      ...{ CURSOR_KEYS: `b:${secret}`, PLAYBACK_KEYS: `b:${secret}`, WEBHOOK_SECRET_KEYS: `b:${secret}` },
      ...{ INTERNAL_SECRET: secret, TRUSTED_PROXIES: '1' },
    }),
    // Nothing that is measured looks at objects.
    objects: {} as ObjectStore,
    ...{ store, clock: systemClock, logger, metrics },
  });
  await api.start(new AbortController().signal);
  return {
    port: Number(new URL(api.listening).port),
    close: async () => {
      await api.stop();
      await store.close();
    },
  };
});
