import { hostname } from 'node:os';
import { checkKafkaSettings, kafkaSettings } from '@millrace/bus/kafka-settings';
import { keySetText } from '@millrace/domain';
import { flagText, processSettings } from '@millrace/platform';
import { databaseSettings } from '@millrace/store';
import { z } from 'zod';

/** The settings of the webhooks service. */
export const webhooksConfig = z
  .object({
    /** Reads the signing secrets in the record: `kid:secret[,kid:secret]`, the same set as the API's. */
    WEBHOOK_SECRET_KEYS: keySetText,
    /**
     * Names this process among those that deliver. What an earlier process of the name left is taken up at once,
     * so no two may run under one name.
     */
    WEBHOOKS_WORKER: z.string().min(1).default(`${hostname()}-${process.pid}`),
    /**
     * Attempts at once: one that hangs costs little more than its socket for 10 s. Half of them at most go to
     * endpoints of which nothing good is known.
     */
    WEBHOOKS_IN_FLIGHT: z.coerce.number().int().min(2).max(16_384).default(2_048),
    /** How long one attempt may take in all, in milliseconds. The contract promises 10 s. */
    WEBHOOKS_TIMEOUT_MS: z.coerce.number().int().min(100).max(10_000).default(10_000),
    /** How long the record keeps an attempt for this process, in milliseconds; it must outlast an attempt. */
    WEBHOOKS_LEASE_MS: z.coerce.number().int().min(1_000).default(20_000),
    /** Lets deliveries go to this machine, over http too: for development. */
    WEBHOOKS_ALLOW_LOOPBACK: flagText,
  })
  .refine((config) => config.WEBHOOKS_LEASE_MS >= config.WEBHOOKS_TIMEOUT_MS + 2_000, {
    path: ['WEBHOOKS_LEASE_MS'],
    error: 'must be 2 s longer than WEBHOOKS_TIMEOUT_MS',
  });

export type WebhooksConfig = z.output<typeof webhooksConfig>;

/** Of a webhooks service that is a process of its own. */
export const webhooksProcessConfig = webhooksConfig
  .safeExtend({ ...processSettings, ...databaseSettings, ...kafkaSettings })
  .superRefine(checkKafkaSettings);
