import { openBus } from '@millrace/bus/kafka';
import { loadConfig, runService } from '@millrace/platform';
import { directUrl, openDatabase } from '@millrace/store';
import { webhooksProcessConfig } from './config.ts';
import { createWebhooks } from './service.ts';

process.exitCode = await runService({
  name: 'webhooks',
  read: () => loadConfig(webhooksProcessConfig, process.env),
  create: (config, parts) => {
    const store = parts.own(openDatabase(config, parts));
    const bus = parts.own(openBus(config, parts));
    return createWebhooks({ ...parts, config, store, bus, connectionString: directUrl(config) });
  },
});
