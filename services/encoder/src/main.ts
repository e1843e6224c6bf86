import { openBus } from '@millrace/bus/kafka';
import { openObjects } from '@millrace/objects/s3';
import { loadConfig, runService } from '@millrace/platform';
import { openDatabase } from '@millrace/store';
import { encoderProcessConfig } from './config.ts';
import { createEncoder } from './service.ts';

process.exitCode = await runService({
  name: 'encoder',
  read: () => loadConfig(encoderProcessConfig, process.env),
  create: (config, parts) => {
    const store = parts.own(openDatabase(config, parts));
    const bus = parts.own(openBus(config, parts));
    const objects = parts.own(openObjects(config, parts));
    return createEncoder({ ...parts, config, store, bus, objects });
  },
});
