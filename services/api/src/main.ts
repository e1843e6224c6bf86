import { openObjects } from '@millrace/objects/s3';
import { loadConfig, runService } from '@millrace/platform';
import { openDatabase } from '@millrace/store';
import { apiProcessConfig } from './config.ts';
import { createApi } from './service.ts';

process.exitCode = await runService({
  name: 'api',
  read: () => loadConfig(apiProcessConfig, process.env),
  create: (config, parts) => {
    const store = parts.own(openDatabase(config, parts));
    const objects = parts.own(openObjects(config, parts));
    return createApi({ ...parts, config, store, objects });
  },
});
