import { keySetText } from '@millrace/domain';
import { z } from 'zod';

const port = z.coerce.number().int().min(0).max(65_535);
const httpUrl = z.url({ protocol: /^https?$/ }).transform((url) => url.replace(/\/+$/, ''));
const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);
/** As in an origin: no scheme, no port. */
const hostname = z
  .string()
  .toLowerCase()
  .regex(/^[a-z0-9-]+(\.[a-z0-9-]+)*$/, 'is not a host name');
/** A shared secret: shorter ones can be guessed. */
const secret = z.string().refine((text) => Buffer.byteLength(text) >= 32, 'has less than 32 bytes');

/** `name:secret[,name:secret]` */
const namedSecrets = list.transform((entries, context) => {
  const secrets = new Map<string, string>();
  for (const [index, entry] of entries.entries()) {
    const [, name, value] = /^([a-z][a-z0-9_-]{0,31}):(.{32,})$/.exec(entry) ?? [];
    // What is wrong may be the secret itself: only its position is told.
    if (name === undefined || value === undefined) {
      context.addIssue({
        code: 'custom',
        message: `entry ${index + 1} is not name:secret of 32 bytes or more`,
      });
    } else secrets.set(name, value);
  }
  return secrets;
});

/** The API's settings. */
export const apiConfig = z.object({
  API_HOST: z.string().default('127.0.0.1'),
  /** 0 takes a free one. */
  API_PORT: port.default(0),
  /** Admin and internal routes; must not be reachable from outside. */
  API_INTERNAL_HOST: z.string().default('127.0.0.1'),
  API_INTERNAL_PORT: port.default(0),
  API_MAX_CONNECTIONS: z.coerce.number().int().min(1).default(4_096),
  /** How many proxies in front are trusted to say whom they saw; 0: `X-Forwarded-For` is ignored. */
  TRUSTED_PROXIES: z.coerce.number().int().min(0).max(10).default(0),
  /** Requests that a client may make in a minute, over all replicas (contract "Limits"). */
  API_RATE_PER_MINUTE: z.coerce.number().int().min(1).default(1_200),
  AUTH_RATE_PER_MINUTE: z.coerce.number().int().min(1).default(60),
  DEMO_RATE_PER_MINUTE: z.coerce.number().int().min(1).default(30),
  /** The address that customers use. Its own origin may change things with a session. */
  API_URL: httpUrl,
  /** Base of the playback addresses in answers. */
  CDN_URL: httpUrl,
  /** Base of the error types, `{docs_url}/errors/<code>`. */
  DOCS_URL: httpUrl,
  /** Hosts of the dashboard; browsers there may use sessions, and previews play. Unset: no previews. */
  DASHBOARD_HOSTS: list.pipe(z.array(hostname)).default([]),
  /** Signs cursors: `kid:secret[,kid:secret]`. */
  CURSOR_KEYS: keySetText,
  /** Signs playback tokens; the CDN verifies with the same set. */
  PLAYBACK_KEYS: keySetText,
  /** Signs upload tokens; unset: there are none (`503 upload_not_configured`). */
  UPLOAD_TOKEN_KEYS: keySetText.optional(),
  /** Encrypts webhook signing secrets in the record; the webhooks service reads them with the same set. */
  WEBHOOK_SECRET_KEYS: keySetText,
  /** Takes webhook endpoints on this machine, over http too: for development. */
  WEBHOOKS_ALLOW_LOOPBACK: z
    .enum(['true', 'false'])
    .default('false')
    .transform((text) => text === 'true'),
  /** What `GET /v1/demo/playback` plays, and on which host's pages; unset: `503 not_configured`. */
  DEMO_VIDEO_ID: z.string().optional(),
  DEMO_DOMAIN: z.string().optional(),
  /** Payment providers that may call back: `provider:secret[,provider:secret]`. */
  BILLING_CALLBACK_SECRETS: namedSecrets.default(new Map()),
  /** The shared admin token; unset: admin routes refuse every caller. */
  ADMIN_TOKEN: secret.optional(),
  /**
   * Tokens of an access gateway that admin routes accept: who issues them, for whom, and where the keys are. All or
   * none.
   */
  ADMIN_JWT_ISSUER: z.string().min(1).optional(),
  ADMIN_JWT_AUDIENCE: z.string().min(1).optional(),
  ADMIN_JWKS_URL: httpUrl.optional(),
  /** What `X-Internal-Secret` must be. */
  INTERNAL_SECRET: secret,
  /** `host:port` of the servers that domain verification asks; unset: each zone's own. */
  DNS_SERVERS: list.default([]),
});

export type ApiConfig = z.output<typeof apiConfig>;
