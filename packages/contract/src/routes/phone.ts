import { z } from 'zod';
import { account, phoneChallenge } from '../resources.ts';
import { text } from '../text.ts';
import { defineRoutes } from './route.ts';

const session = { auth: ['session'], cors: 'dashboard', method: 'post', tag: 'Account' } as const;

export const phoneRoutes = defineRoutes({
  startPhoneVerification: {
    ...session,
    path: '/v1/me/phone/start',
    summary: 'Send a code to a mobile phone',
    description:
      'A mobile of Saudi Arabia or another GCC country: international (`+966…`, `00966…`) or local (`05XXXXXXXX`, read as of `country`). Only a keyed hash of the number is stored. Voids the challenge before it.',
    body: z.strictObject({
      phone: text({ max: 64 }),
      country: z
        .string()
        .max(64)
        .optional()
        .meta({ description: 'sa, ae, kw, qa, bh or om; sa unless told. Counts for local numbers only.' }),
    }),
    response: { status: 200, body: phoneChallenge, description: 'The code is on its way.' },
    errors: [
      ...(['invalid_phone', 'invalid_country', 'banned', 'phone_rate_limited'] as const),
      ...(['sms_not_configured', 'sms_send_failed'] as const),
    ],
  },
  verifyPhone: {
    ...session,
    path: '/v1/me/phone/verify',
    summary: 'Prove a phone number with the code that came',
    body: z.strictObject({ challengeId: text({ max: 64 }), code: text({ max: 64 }) }),
    response: { status: 200, body: account, description: 'The account, its phone verified.' },
    errors: [
      ...(['invalid_code', 'banned', 'challenge_not_found', 'code_expired'] as const),
      ...(['too_many_attempts', 'sms_not_configured'] as const),
    ],
  },
});
