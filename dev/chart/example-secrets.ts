import { containerOf, type EnvVariable, type Workload } from './objects.ts';

const key = `k1:${'s'.repeat(40)}`;
/** What an operator would put into the Secrets. */
const secrets: Readonly<Record<string, string>> = {
  ...{ DATABASE_URL: 'postgres://u:p@pg/millrace', DATABASE_DIRECT_URL: 'postgres://u:p@pg/millrace' },
  ...{ CURSOR_KEYS: key, PLAYBACK_KEYS: key, UPLOAD_TOKEN_KEYS: key, WEBHOOK_SECRET_KEYS: key },
  ...{ SIGN_IN_KEYS: key, PHONE_KEYS: key, BILLING_CALLBACK_SECRETS: `provider:${'s'.repeat(40)}` },
  ...{ INTERNAL_SECRET: 's'.repeat(40), ADMIN_TOKEN: 's'.repeat(40), TWILIO_AUTH_TOKEN: 's' },
  ...{ SSO_GOOGLE_CLIENT_SECRET: 's', SSO_MICROSOFT_CLIENT_SECRET: 's' },
  ...{ S3_ACCESS_KEY_ID: 's', S3_SECRET_ACCESS_KEY: 's' },
  ...{ KAFKA_SASL_USERNAME: 's', KAFKA_SASL_PASSWORD: 's' },
  ...{ KAFKA_TLS_CA: 'pem', KAFKA_TLS_CERT: 'pem', KAFKA_TLS_KEY: 'pem' },
};

const valueOf = ({ name, value }: EnvVariable): string => {
  const known = value ?? secrets[name];
  if (known === undefined) throw new Error(`no operator would know what ${name} is`);
  return known;
};

/** What a workload's container runs with, when the Secrets hold examples. */
export const exampleEnvironment = (workload: Workload): Record<string, string> =>
  Object.fromEntries(containerOf(workload).env.map((variable) => [variable.name, valueOf(variable)]));
