import { homedir } from 'node:os';
import { join } from 'node:path';
import { checkKafkaSettings, kafkaSettings } from '@millrace/bus/kafka-settings';
import { keySetText, sharedSecretText } from '@millrace/domain';
import { checkS3Settings, s3Settings } from '@millrace/objects/s3-settings';
import { processSettings } from '@millrace/platform';
import { z } from 'zod';

const mebibytes = 1024 * 1024;
const bytes = (fallback: number) => z.coerce.number().int().min(mebibytes).default(fallback);
const milliseconds = (fallback: number) => z.coerce.number().int().min(100).default(fallback);
const httpUrl = z.url({ protocol: /^https?$/ }).transform((url) => url.replace(/\/+$/, ''));

/** The CDN's settings. */
export const cdnConfig = z.object({
  CDN_HOST: z.string().default('127.0.0.1'),
  /** 0 takes a free one. */
  CDN_PORT: z.coerce.number().int().min(0).max(65_535).default(0),
  /** The address that players use. Its origin passes the domain check: the embed page is there. */
  CDN_URL: httpUrl,
  /** Base of the error types, `{docs_url}/errors/<code>`. */
  DOCS_URL: httpUrl,
  /** Verifies playback tokens: `kid:secret[,kid:secret]`, the same set that the API signs with. */
  PLAYBACK_KEYS: keySetText,
  /** Proxies in front whose `X-Forwarded-For` is believed, for metering alone. */
  TRUSTED_PROXIES: z.coerce.number().int().min(0).max(10).default(0),
  /** Where the player's files are kept once they are built. */
  MILLRACE_CACHE: z
    .string()
    .min(1)
    .default(join(homedir(), '.cache', 'millrace')),
  CDN_MAX_CONNECTIONS: z.coerce.number().int().min(1).default(20_000),
  /** Memory for segments, init segments and pictures that are kept. */
  CDN_BLOCK_CACHE_BYTES: bytes(256 * mebibytes),
  /** Memory for what is being fetched from the object store; more waits. */
  CDN_FETCH_BYTES: bytes(128 * mebibytes),
  /** Memory for answers that viewers have not taken yet; more is refused with 503. */
  CDN_SEND_BYTES: bytes(512 * mebibytes),
  /** Memory for delivery indexes and their playlists. */
  CDN_INDEX_CACHE_BYTES: bytes(128 * mebibytes),
  /** Memory for states of videos and accounts. */
  CDN_STATE_CACHE_BYTES: bytes(32 * mebibytes),
  /** Memory for verified tokens, and as much again for what is metered of them. */
  CDN_TOKEN_CACHE_BYTES: bytes(32 * mebibytes),
  /** One fetch from the object store in all. */
  CDN_STORE_TIMEOUT_MS: milliseconds(30_000),
  /** One read of the internal route in all. */
  CDN_RECORD_TIMEOUT_MS: milliseconds(2_000),
});

export type CdnConfig = z.output<typeof cdnConfig>;

/** Of a CDN that is a process of its own: it has no database, and asks the API instead. */
export const cdnProcessConfig = cdnConfig
  .safeExtend({
    ...processSettings,
    ...kafkaSettings,
    ...s3Settings,
    /** The API's internal port. */
    API_INTERNAL_URL: httpUrl,
    /** What its `X-Internal-Secret` must be: the first of these, separated by commas. */
    INTERNAL_SECRET: sharedSecretText,
  })
  .superRefine(checkKafkaSettings)
  .superRefine(checkS3Settings);
