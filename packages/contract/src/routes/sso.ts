import { z } from 'zod';
import { defineRoutes } from './route.ts';

/** Once is one; a repeated one is none, and no reason to refuse the browser that was sent here. */
const parameter = z.union([z.string(), z.array(z.string())]).optional();

/** Browsers come here by redirects; only sign-out is called by the dashboard's script. */
export const ssoRoutes = defineRoutes({
  startSignIn: {
    method: 'get',
    path: '/auth/{provider}/start',
    summary: 'Send the browser to an identity provider',
    description:
      '`google` or `microsoft`. `returnTo` is a path of the dashboard, to be led to afterwards; anything else leads to `/`.',
    tag: 'Sign-in',
    auth: [],
    errorPages: true,
    query: z.object({ returnTo: parameter }),
    response: { status: 303, description: 'To the identity provider.' },
    errors: ['banned', 'provider_error', 'not_configured'],
  },
  finishSignIn: {
    method: 'get',
    path: '/auth/{provider}/callback',
    summary: 'Where the identity provider sends the browser back to',
    description: 'Sets `svc_session`. The first sign-in makes the user and the account.',
    tag: 'Sign-in',
    auth: [],
    errorPages: true,
    query: z.object({
      ...{ state: parameter, code: parameter, iss: parameter },
      ...{ error: parameter, error_description: parameter },
    }),
    response: { status: 303, description: 'To the dashboard, signed in.' },
    errors: ['invalid_state', 'auth_denied', 'banned', 'account_banned', 'provider_error', 'not_configured'],
  },
  signOut: {
    method: 'post',
    path: '/auth/logout',
    summary: 'End the session',
    tag: 'Sign-in',
    auth: ['session'],
    cors: 'dashboard',
    response: { status: 204, description: 'The session is over, and its cookie is taken back.' },
  },
});
