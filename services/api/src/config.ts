import { keySetText, sharedSecretText } from '@millrace/domain';
import { checkS3Settings, s3Settings } from '@millrace/objects/s3-settings';
import { flagText, listText, processSettings } from '@millrace/platform';
import { databaseSettings } from '@millrace/store';
import { z } from 'zod';

const port = z.coerce.number().int().min(0).max(65_535);
const httpUrl = z.url({ protocol: /^https?$/ }).transform((url) => url.replace(/\/+$/, ''));
/** As in an origin: no scheme, no port. */
const hostname = z
  .string()
  .toLowerCase()
  .regex(/^[a-z0-9-]+(\.[a-z0-9-]+)*$/, 'is not a host name');
/** `name:secret[,name:secret]` */
const namedSecrets = listText.transform((entries, context) => {
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

/** Of an identity provider; http on this machine alone, for development. */
const issuerUrl = httpUrl.refine(
  (url) => url.startsWith('https:') || ['127.0.0.1', 'localhost', '[::1]'].includes(new URL(url).hostname),
  'is not https',
);

const settings = z.object({
  NODE_ENV: z.string().default('development'),
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
  DASHBOARD_HOSTS: listText.pipe(z.array(hostname)).default([]),
  /** Where sign-in leads back to; the first of `DASHBOARD_HOSTS`, by https, unless told. */
  DASHBOARD_URL: httpUrl.optional(),
  /** Sign-in by OpenID Connect; a provider without client id and secret is off (`503 not_configured`). */
  SSO_GOOGLE_ISSUER: issuerUrl.default('https://accounts.google.com'),
  SSO_GOOGLE_CLIENT_ID: z.string().optional(),
  SSO_GOOGLE_CLIENT_SECRET: z.string().optional(),
  SSO_MICROSOFT_ISSUER: issuerUrl.default('https://login.microsoftonline.com/common/v2.0'),
  SSO_MICROSOFT_CLIENT_ID: z.string().optional(),
  SSO_MICROSOFT_CLIENT_SECRET: z.string().optional(),
  /** Signs the cookies of sign-ins under way and of devices; unset: nobody signs in. */
  SIGN_IN_KEYS: keySetText.optional(),
  /** Who sends codes to phones; unset: `503 sms_not_configured`. `log` sends nothing and tells the code: no production. */
  SMS_PROVIDER: z.enum(['log', 'twilio']).optional(),
  /** Hashes phone numbers and codes: `kid:secret[,kid:secret]`. Old ones have to stay: numbers are kept as hashes. */
  PHONE_KEYS: keySetText.optional(),
  TWILIO_URL: httpUrl.default('https://api.twilio.com'),
  TWILIO_ACCOUNT_SID: z
    .string()
    .regex(/^AC[0-9a-f]{32}$/, 'is not an account SID')
    .optional(),
  TWILIO_AUTH_TOKEN: z.string().min(1).optional(),
  /** A number, a sender id, or the SID of a messaging service. */
  TWILIO_FROM: z.string().min(1).optional(),
  /** Signs cursors: `kid:secret[,kid:secret]`. */
  CURSOR_KEYS: keySetText,
  /** Signs playback tokens; the CDN verifies with the same set. */
  PLAYBACK_KEYS: keySetText,
  /** Signs upload tokens; unset: there are none (`503 upload_not_configured`). */
  UPLOAD_TOKEN_KEYS: keySetText.optional(),
  /** Encrypts webhook signing secrets in the record; the webhooks service reads them with the same set. */
  WEBHOOK_SECRET_KEYS: keySetText,
  /** Takes webhook endpoints on this machine, over http too: for development. */
  WEBHOOKS_ALLOW_LOOPBACK: flagText,
  /** What `GET /v1/demo/playback` plays, and on which host's pages; unset: `503 not_configured`. */
  DEMO_VIDEO_ID: z.string().optional(),
  DEMO_DOMAIN: z.string().optional(),
  /** Payment providers that may call back: `provider:secret[,provider:secret]`. */
  BILLING_CALLBACK_SECRETS: namedSecrets.default(new Map()),
  /** The shared admin token; unset: admin routes refuse every caller. Several, separated by commas, all are one. */
  ADMIN_TOKEN: sharedSecretText.optional(),
  /**
   * Tokens of an access gateway that admin routes accept: who issues them, for whom, and where the keys are. All or
   * none.
   */
  ADMIN_JWT_ISSUER: z.string().min(1).optional(),
  ADMIN_JWT_AUDIENCE: z.string().min(1).optional(),
  ADMIN_JWKS_URL: httpUrl.optional(),
  /** What `X-Internal-Secret` must be: one of these, separated by commas. */
  INTERNAL_SECRET: sharedSecretText,
  /** `host:port` of the servers that domain verification asks; unset: each zone's own. */
  DNS_SERVERS: listText.default([]),
});

/** The API's settings. */
export const apiConfig = settings.superRefine((config, context) => {
  const refuse = (path: string, message: string): void => {
    context.addIssue({ code: 'custom', path: [path], message });
  };
  if (config.SMS_PROVIDER === 'log' && config.NODE_ENV === 'production')
    refuse('SMS_PROVIDER', 'is not for production');
  if (config.SMS_PROVIDER !== undefined && config.PHONE_KEYS === undefined)
    refuse('PHONE_KEYS', 'is needed with SMS_PROVIDER');
  if (config.SMS_PROVIDER === 'twilio')
    for (const name of ['TWILIO_ACCOUNT_SID', 'TWILIO_AUTH_TOKEN', 'TWILIO_FROM'] as const)
      if (config[name] === undefined) refuse(name, 'is needed with SMS_PROVIDER=twilio');
});

export type ApiConfig = z.output<typeof apiConfig>;

/** Of an API that is a process of its own. */
export const apiProcessConfig = apiConfig
  .safeExtend({ ...processSettings, ...databaseSettings, ...s3Settings })
  .superRefine(checkS3Settings);
