import { openBus } from '@millrace/bus/kafka';
import { openObjects } from '@millrace/objects/s3';
import { sharedSecretsOf } from '@millrace/domain';
import { loadConfig, runService } from '@millrace/platform';
import { cdnProcessConfig } from './config.ts';
import { createCdn } from './service.ts';

process.exitCode = await runService({
  name: 'cdn',
  read: () => loadConfig(cdnProcessConfig, process.env),
  create: (config, parts) => {
    const bus = parts.own(openBus(config, parts));
    const objects = parts.own(openObjects(config, { ...parts, readOnly: true }));
    const [secret] = sharedSecretsOf(config.INTERNAL_SECRET);
    const internal = { url: config.API_INTERNAL_URL, secret };
    return createCdn({ ...parts, config, bus, objects, internal });
  },
});
