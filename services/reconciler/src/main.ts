import { openBus } from '@millrace/bus/kafka';
import { openObjects } from '@millrace/objects/s3';
import { loadConfig, runService } from '@millrace/platform';
import { directUrl, openDatabase } from '@millrace/store';
import { reconcilerProcessConfig } from './config.ts';
import { openKubernetes } from './kubernetes/open.ts';
import { probeLoop } from './probe/probe.ts';
import { probeOf } from './probe/settings.ts';
import { createReconciler } from './service.ts';

process.exitCode = await runService({
  name: 'reconciler',
  read: () => loadConfig(reconcilerProcessConfig, process.env),
  create: (config, parts) => {
    const store = parts.own(openDatabase(config, parts));
    const bus = parts.own(openBus(config, parts));
    const objects = parts.own(openObjects(config, parts));
    const kubernetes = openKubernetes(config, parts);
    const probe = probeOf(config);
    const connectionString = directUrl(config);
    return createReconciler({
      ...{ ...parts, config, store, bus, objects, connectionString, kubernetes },
      chores: (metrics) => (probe === null ? [] : [probeLoop(probe, { ...parts, metrics })]),
    });
  },
});
