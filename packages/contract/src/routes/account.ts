import { z } from 'zod';
import { account, accountPlan, planResource, user, whitelistEntry } from '../resources.ts';
import { defineRoutes, listOf } from './route.ts';

const session = { auth: ['session'], cors: 'dashboard' } as const;

/** Plans that are not on sale yet. */
const paidPlans = ['starter', 'pro', 'agency'] as const;

export const accountRoutes = defineRoutes({
  getMe: {
    ...session,
    method: 'get',
    path: '/v1/me',
    summary: 'The signed-in user and the account',
    tag: 'Account',
    response: {
      status: 200,
      body: z.object({ user, account }),
      description: 'Who is signed in.',
    },
  },
  getBillingPlan: {
    ...session,
    method: 'get',
    path: '/v1/billing/plan',
    summary: 'The account’s plan, its limits and what is used of them',
    tag: 'Billing',
    response: { status: 200, body: accountPlan, description: 'Of all projects, in the current period.' },
  },
  listBillingPlans: {
    ...session,
    method: 'get',
    path: '/v1/billing/plans',
    summary: 'The paid plans',
    tag: 'Billing',
    response: { status: 200, body: listOf(planResource), description: 'All of them, cheapest first.' },
  },
  joinWhitelist: {
    ...session,
    method: 'post',
    path: '/v1/billing/whitelist',
    summary: 'Say that the account wants a paid plan',
    description: 'Takes no payment and never changes the plan. A repeat refreshes the e-mail address.',
    tag: 'Billing',
    body: z.strictObject({ planId: z.enum(paidPlans), email: z.email().max(320) }),
    response: { status: 200, body: z.object({ data: whitelistEntry }), description: 'The entry.' },
  },
  listWhitelist: {
    ...session,
    method: 'get',
    path: '/v1/billing/whitelist',
    summary: 'The account’s own whitelist entries',
    tag: 'Billing',
    response: { status: 200, body: listOf(whitelistEntry), description: 'All of them.' },
  },
  checkout: {
    ...session,
    method: 'post',
    path: '/v1/billing/checkout',
    summary: 'Buy a plan; not on sale yet',
    tag: 'Billing',
    response: { status: 200, body: z.object({}), description: 'Not in this version.' },
    errors: ['billing_paused'],
  },
  billingCallback: {
    method: 'post',
    path: '/v1/billing/callbacks/{provider}',
    summary: 'What a payment provider reports',
    description:
      'Signed by the provider: `X-Signature` is the hex HMAC-SHA256 of the raw body under the secret that was agreed. The body is `{ id, payment? }`, where `payment` is `{ accountId, planId, amount, currency }`; other fields are kept with it. A repeat of the same event `id` changes nothing.',
    tag: 'Billing',
    auth: [],
    rawBody: { maxBytes: 65_536 },
    response: { status: 200, body: z.object({ received: z.literal(true) }), description: 'It is on record.' },
    errors: ['unauthorized', 'billing_mismatch', 'billing_unavailable'],
  },
});
