import { randomInt, timingSafeEqual } from 'node:crypto';
import { ProblemError } from '@millrace/contract';
import { type KeySet } from '@millrace/domain';
import { type Logger } from '@millrace/platform';
import {
  accountResource,
  dropChallenge,
  openChallenge,
  reserveChallenge,
  tryPhoneCode,
} from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type ApiConfig } from '../config.ts';
import { type FeatureDeps } from '../deps.ts';
import { codeHashes, maskedNumber, mobileNumber, phoneHashes } from './number.ts';
import { createLogSmsSender } from './log-sms-sender.ts';
import { type SmsSender } from './sms-sender.ts';
import { createTwilioSmsSender } from './twilio-sms-sender.ts';

/**
 * Proof of a phone number by a code. Number and code pass through memory only: neither is logged, queued or stored,
 * but for keyed hashes.
 */
export function phoneHandlers({
  config,
  store,
  clock,
  logger,
}: FeatureDeps): Pick<ApiHandlers, 'startPhoneVerification' | 'verifyPhone'> {
  const sms = senderOf(config, logger);
  const keysOf = (): KeySet => {
    if (config.PHONE_KEYS === undefined) throw new ProblemError('sms_not_configured');
    return config.PHONE_KEYS;
  };
  return {
    startPhoneVerification: async ({ caller: { accountId }, body }) => {
      const keys = keysOf();
      if (sms === null) throw new ProblemError('sms_not_configured');
      const number = mobileNumber(body.phone, body.country);
      const code = randomInt(1_000_000).toString().padStart(6, '0');
      const { id: challengeId, expiresAt } = await reserveChallenge(store, {
        accountId,
        phoneHashes: phoneHashes(number, keys),
        codeHashOf: (id) => signingHash(codeHashes(id, code, keys)),
        now: clock.now(),
      });
      await sms
        .send(number, `Your Millrace code is ${code}. It is valid for 10 minutes.`)
        .catch(async (cause: unknown) => {
          await dropChallenge(store, challengeId);
          throw new ProblemError('sms_send_failed', { cause });
        });
      await openChallenge(store, { accountId, challengeId, now: clock.now() });
      return {
        challengeId,
        phone: maskedNumber(number),
        expiresAt: expiresAt.toISOString(),
        ...(tellsCodes(config) ? { testCode: code } : {}),
      };
    },

    verifyPhone: async ({ caller: { accountId }, body: { challengeId, code } }) => {
      const expected = codeHashes(challengeId, code, keysOf());
      const account = await tryPhoneCode(store, {
        ...{ accountId, challengeId, now: clock.now() },
        fits: (stored) => expected.some((hash) => timingSafeEqual(hash, stored)),
      });
      return accountResource(account);
    },
  };
}

/** The `log` provider's stand-in for the phone is the answer; the settings refuse it in production. */
const tellsCodes = ({ SMS_PROVIDER, NODE_ENV }: ApiConfig): boolean =>
  SMS_PROVIDER === 'log' && NODE_ENV !== 'production';

/** Null: there is none. */
function senderOf(config: ApiConfig, logger: Logger): SmsSender | null {
  const { SMS_PROVIDER, TWILIO_URL, TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN, TWILIO_FROM } = config;
  if (tellsCodes(config)) return createLogSmsSender(logger);
  const whole =
    TWILIO_ACCOUNT_SID !== undefined && TWILIO_AUTH_TOKEN !== undefined && TWILIO_FROM !== undefined;
  if (SMS_PROVIDER !== 'twilio' || !whole) return null;
  return createTwilioSmsSender({
    ...{ url: TWILIO_URL, accountSid: TWILIO_ACCOUNT_SID },
    ...{ authToken: TWILIO_AUTH_TOKEN, from: TWILIO_FROM },
  });
}

function signingHash([first]: readonly Buffer[]): Buffer {
  if (first === undefined) throw new Error('a key set has no key');
  return first;
}
