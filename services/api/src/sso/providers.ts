import { ProblemError } from '@millrace/contract';
import { type Clock } from '@millrace/platform';
import * as openid from 'openid-client';
import { type ApiConfig } from '../config.ts';
import { type ApiDeps } from '../deps.ts';

export interface Provider {
  name: string;
  /** What discovery says, fetched at first use. @throws ProblemError `provider_error` */
  discover(): Promise<openid.Configuration>;
}

interface Settings {
  issuer: string;
  clientId: string;
  clientSecret: string;
}

const discoveryMs = 3_600_000;
const timeoutSeconds = 10;

/** The providers by name. @throws ProblemError `not_found` for another name, `not_configured` for one that is off */
export function createProviders(
  deps: Pick<ApiDeps, 'config' | 'clock' | 'fetch'>,
): (name: string) => Provider {
  const known = new Map(
    Object.entries(settingsOf(deps.config)).map(([name, settings]) => [
      name,
      settings === null ? null : createProvider(name, settings, deps),
    ]),
  );
  return (name) => {
    const provider = known.get(name);
    if (provider === undefined) throw new ProblemError('not_found');
    if (provider === null) throw new ProblemError('not_configured');
    return provider;
  };
}

function settingsOf(config: ApiConfig): Record<'google' | 'microsoft', Settings | null> {
  const whole = (issuer: string, clientId?: string, clientSecret?: string): Settings | null =>
    clientId === undefined || clientSecret === undefined ? null : { issuer, clientId, clientSecret };
  return {
    google: whole(config.SSO_GOOGLE_ISSUER, config.SSO_GOOGLE_CLIENT_ID, config.SSO_GOOGLE_CLIENT_SECRET),
    microsoft: whole(
      config.SSO_MICROSOFT_ISSUER,
      config.SSO_MICROSOFT_CLIENT_ID,
      config.SSO_MICROSOFT_CLIENT_SECRET,
    ),
  };
}

function createProvider(
  name: string,
  settings: Settings,
  { clock, fetch: send }: { clock: Clock; fetch?: typeof fetch },
): Provider {
  let last: { at: number; found: Promise<openid.Configuration> } | null = null;
  return {
    name,
    discover: async () => {
      const now = clock.now().getTime();
      if (last === null || now - last.at >= discoveryMs) last = { at: now, found: discover(settings, send) };
      const current = last;
      return current.found.catch((error: unknown) => {
        // A failure is not kept: the next sign-in asks again.
        if (last === current) last = null;
        throw providerProblem(error);
      });
    },
  };
}

const discover = (
  { issuer, clientId, clientSecret }: Settings,
  send: typeof fetch | undefined,
): Promise<openid.Configuration> =>
  openid.discovery(new URL(issuer), clientId, clientSecret, undefined, {
    timeout: timeoutSeconds,
    // The settings let http be on this machine's own addresses alone.
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- marked so that it stands out
    execute: issuer.startsWith('http:') ? [openid.allowInsecureRequests] : [],
    ...(send === undefined ? {} : { [openid.customFetch]: send as openid.CustomFetch }),
  });

/** What a provider did wrong: codes only, since what it sent holds e-mail addresses. */
class ProviderError extends Error {
  override readonly name = 'ProviderError';
}

/** What an error of `openid-client` means for the browser that came back (contract "SSO sign-in"). */
export function providerProblem(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error;
  const { code, error: said } = error as { code?: unknown; error?: unknown };
  const claim = claimOf(error);
  // An ID token that was made for another flow.
  if (claim === 'nonce') return new ProblemError('invalid_state');
  if (said === 'access_denied') return new ProblemError('auth_denied');
  const words = [code, said, claim].filter((word) => typeof word === 'string').join(' ');
  const { message } = error as Error;
  return new ProblemError('provider_error', { cause: new ProviderError(`${message} (${words})`) });
}

/** The claim of an ID token that was not as expected: the library says so in the causes of its error. */
function claimOf(error: unknown): unknown {
  for (let at = error; typeof at === 'object' && at !== null; at = (at as { cause?: unknown }).cause)
    if ('claim' in at) return at.claim;
  return undefined;
}
