import { type IncomingHttpHeaders } from 'node:http';
import { ProblemError } from '@millrace/contract';
import { type KeySet } from '@millrace/domain';
import { type Logger } from '@millrace/platform';
import {
  createSession,
  deleteSession,
  type Identity,
  IdentityRefusedError,
  userOfIdentity,
} from '@millrace/store';
import * as openid from 'openid-client';
import { cookieOf, cookieText, sessionCookie } from '../auth/credentials.ts';
import { refuseBannedDevice, rememberDevice } from '../auth/device.ts';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';
import { identityOf } from './claims.ts';
import { beginFlow, endFlow, findFlow, flowExpiry, type SignInFlow } from './flow.ts';
import { createProviders, type Provider, providerProblem } from './providers.ts';
import { safeReturnTo } from './return-to.ts';

/** The record ends a session 7 days after its last use (contract SES-003); the cookie must not end it sooner. */
const sessionSeconds = 30 * 86_400;

/** Sign-in by OpenID Connect (authorization code with PKCE), and sign-out. */
export function ssoHandlers(
  deps: FeatureDeps,
): Pick<ApiHandlers, 'startSignIn' | 'finishSignIn' | 'signOut'> {
  const { config, clock, store } = deps;
  const providerOf = createProviders(deps);
  const settings = (): { keys: KeySet; dashboard: string } => {
    const [host] = config.DASHBOARD_HOSTS;
    const dashboard = config.DASHBOARD_URL ?? (host === undefined ? undefined : `https://${host}`);
    const keys = config.SIGN_IN_KEYS;
    if (keys === undefined || dashboard === undefined) throw new ProblemError('not_configured');
    return { keys, dashboard };
  };
  const callbackUrl = (name: string): string => `${config.API_URL}/auth/${name}/callback`;

  return {
    startSignIn: async ({ params, query, headers, setHeader }) => {
      const provider = providerOf(params.provider);
      const { keys } = settings();
      await refuseBannedDevice(deps, headers);
      const server = await provider.discover();
      const flow: SignInFlow = {
        provider: provider.name,
        state: openid.randomState(),
        nonce: openid.randomNonce(),
        verifier: openid.randomPKCECodeVerifier(),
        returnTo: safeReturnTo(query.returnTo),
        expiresAt: flowExpiry(clock.now()),
      };
      setHeader('Set-Cookie', beginFlow(flow, headers, keys));
      setHeader('Location', await authorizationUrl(server, flow, callbackUrl(provider.name)));
      return undefined;
    },

    finishSignIn: async ({ params, query, headers, setHeader, log }) => {
      const provider = providerOf(params.provider);
      const { keys, dashboard } = settings();
      await refuseBannedDevice(deps, headers);
      const state = once(query.state);
      const at = { keys, now: clock.now() };
      const flow = findFlow(headers, { state, provider: provider.name }, at);
      if (flow === null) throw new ProblemError('invalid_state');
      // Whatever comes of it, the answer ends the flow.
      setHeader('Set-Cookie', endFlow(flow.state));
      const back = new URL(callbackUrl(provider.name));
      for (const [name, value] of Object.entries(query)) {
        if (typeof value === 'string') back.searchParams.set(name, value);
      }
      const identity = await identify(provider, flow, back);
      const { session, device } = await admit(identity, headers, log);
      setHeader('Set-Cookie', [endFlow(flow.state), session, ...device]);
      setHeader('Location', new URL(flow.returnTo, dashboard).href);
      return undefined;
    },

    signOut: async ({ headers, setHeader }) => {
      const cookie = cookieOf(headers, sessionCookie);
      if (cookie !== null) await deleteSession(store, cookie);
      setHeader('Set-Cookie', cookieText(sessionCookie, '', { maxAge: 0 }));
      return undefined;
    },
  };

  /** A session for who was identified, and the cookies that carry it. */
  async function admit(
    identity: Identity,
    headers: IncomingHttpHeaders,
    log: Logger,
  ): Promise<{ session: string; device: string[] }> {
    const now = clock.now();
    const { user, cookie } = await store
      .transaction(async (tx) => {
        const known = await userOfIdentity(tx, identity, now);
        return { user: known, ...(await createSession(tx, { userId: known.userId, now })) };
      })
      .catch((error: unknown) => {
        throw error instanceof IdentityRefusedError ? refusal(error) : error;
      });
    const device = rememberDevice(deps, headers);
    log.info({ ...user, deviceId: device.deviceId }, 'signed in');
    return {
      session: cookieText(sessionCookie, cookie, { maxAge: sessionSeconds }),
      device: device.cookie === null ? [] : [device.cookie],
    };
  }
}

async function authorizationUrl(
  server: openid.Configuration,
  { state, nonce, verifier }: SignInFlow,
  callbackUrl: string,
): Promise<string> {
  return openid.buildAuthorizationUrl(server, {
    ...{ redirect_uri: callbackUrl, scope: 'openid email profile', state, nonce },
    code_challenge: await openid.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  }).href;
}

/** Trades the callback's code for the ID token and proves it. @throws ProblemError */
async function identify(provider: Provider, flow: SignInFlow, back: URL): Promise<Identity> {
  const server = await provider.discover();
  try {
    const tokens = await openid.authorizationCodeGrant(server, back, {
      ...{ expectedState: flow.state, expectedNonce: flow.nonce, pkceCodeVerifier: flow.verifier },
      idTokenExpected: true,
    });
    const claims = tokens.claims();
    if (claims === undefined) throw new Error('the provider sent no ID token');
    return identityOf(provider.name, claims);
  } catch (error) {
    throw providerProblem(error);
  }
}

const refusal = (cause: IdentityRefusedError): ProblemError =>
  new ProblemError('auth_denied', {
    detail:
      cause.code === 'email_taken'
        ? 'This e-mail address belongs to an account that signs in another way. Use the way that you used first.'
        : 'The provider has not verified an e-mail address of yours. Verify it there, then sign in again.',
    page: true,
    cause,
  });

const once = (value: string | string[] | undefined): string => (typeof value === 'string' ? value : '');
