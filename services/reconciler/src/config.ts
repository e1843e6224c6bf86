import { checkKafkaSettings, kafkaSettings } from '@millrace/bus/kafka-settings';
import { checkS3Settings, s3Settings } from '@millrace/objects/s3-settings';
import { listText, processSettings } from '@millrace/platform';
import { databaseSettings } from '@millrace/store';
import { z } from 'zod';
import { kubernetesSettings } from './kubernetes/settings.ts';
import { checkProbeSettings, probeSettings } from './probe/settings.ts';

/** The reconciler's settings. */
export const reconcilerConfig = z.object({
  /** How long leadership lives without a renewal, in milliseconds: a dead leader is replaced after that. */
  RECONCILER_LEASE_MS: z.coerce.number().int().min(1_000).default(5_000),
  /** `host:port` of the servers that the daily check of domains asks; unset: each zone's own. */
  DNS_SERVERS: listText.default([]),
});

export type ReconcilerConfig = z.output<typeof reconcilerConfig>;

/** Of a reconciler that is a process of its own. */
export const reconcilerProcessConfig = reconcilerConfig
  .safeExtend({
    ...processSettings,
    ...databaseSettings,
    ...kafkaSettings,
    ...s3Settings,
    ...kubernetesSettings,
    ...probeSettings,
  })
  .superRefine(checkProbeSettings)
  .superRefine(checkKafkaSettings)
  .superRefine(checkS3Settings);
