import { z } from 'zod';
import { SmsSendError, type SmsSender } from './sms-sender.ts';

export interface TwilioOptions {
  /** Without a final slash. */
  url: string;
  accountSid: string;
  authToken: string;
  /** A number, a sender id, or the SID of a messaging service (`MG…`). */
  from: string;
  /** For one message; 10 s unless told. */
  timeoutMs?: number;
}

/** What is read of Twilio's answers: its messages repeat the number, so only codes are. */
const taken = z.object({ sid: z.string(), status: z.string(), error_code: z.number().nullish() });
const refused = z.object({ code: z.number() });

/**
 * Twilio's Programmable Messaging (`POST /2010-04-01/Accounts/{AccountSid}/Messages.json`). A message is never tried
 * twice: the first may be on its way.
 */
export function createTwilioSmsSender(options: TwilioOptions): SmsSender {
  const { url, accountSid, authToken, from, timeoutMs = 10_000 } = options;
  const authorization = `Basic ${Buffer.from(`${accountSid}:${authToken}`).toString('base64')}`;
  const sender: [string, string] = /^MG[0-9a-f]{32}$/.test(from)
    ? ['MessagingServiceSid', from]
    : ['From', from];
  return {
    send: async (to, text) => {
      const response = await fetch(`${url}/2010-04-01/Accounts/${accountSid}/Messages.json`, {
        method: 'POST',
        headers: { authorization, accept: 'application/json' },
        body: new URLSearchParams([['To', to], sender, ['Body', text]]),
        redirect: 'error',
        signal: AbortSignal.timeout(timeoutMs),
      }).catch((cause: unknown) => {
        throw new SmsSendError('the SMS provider did not answer', { cause });
      });
      const body: unknown = await response.json().catch(() => null);
      if (response.status !== 201) {
        const code = refused.safeParse(body).data?.code ?? 'none';
        throw new SmsSendError(`the SMS provider answered ${response.status}, code ${code}`);
      }
      const message = taken.safeParse(body).data;
      if (message === undefined) throw new SmsSendError('the SMS provider answered no message');
      if (['failed', 'undelivered', 'canceled'].includes(message.status))
        throw new SmsSendError(
          `the SMS provider says ${message.status}, code ${message.error_code ?? 'none'}`,
        );
    },
  };
}
