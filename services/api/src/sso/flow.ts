import { type IncomingHttpHeaders } from 'node:http';
import { type KeySet, signText, verifyText } from '@millrace/domain';
import { z } from 'zod';
import { cookieText } from '../auth/credentials.ts';

/** One sign-in between start and callback; the browser keeps it in a cookie of its own. */
export interface SignInFlow {
  provider: string;
  state: string;
  nonce: string;
  /** PKCE (RFC 7636 §4.1). */
  verifier: string;
  returnTo: string;
  expiresAt: Date;
}

const lifeSeconds = 600;
/** Tabs that may sign in at once; with more, the cookies would grow past what servers take. */
const maximumFlows = 4;
const purpose = 'millrace.sign-in.v1';
/** `__Host-`: browsers take it from the API's own host alone, so that no neighbour plants a sign-in that it began. */
const prefix = '__Host-svc_signin_';

const payload = z.object({
  p: z.string(),
  s: z.string(),
  n: z.string(),
  v: z.string(),
  r: z.string(),
  exp: z.int(),
});

/** Each flow has its cookie, so that sign-ins in two tabs do not undo each other. */
const nameOf = (state: string): string => prefix + state.slice(0, 16);

export const flowExpiry = (now: Date): Date => new Date(now.getTime() + lifeSeconds * 1000);

/** The `Set-Cookie` headers that begin a flow; the oldest of too many go. */
export function beginFlow(flow: SignInFlow, headers: IncomingHttpHeaders, keys: KeySet): string[] {
  const { provider: p, state: s, nonce: n, verifier: v, returnTo: r, expiresAt } = flow;
  const body: z.input<typeof payload> = { p, s, n, v, r, exp: expiresAt.getTime() };
  const open = cookiesOf(headers)
    .map(([name, text]) => ({ name, flow: parse(text, keys) }))
    .sort((a, b) => (b.flow?.expiresAt.getTime() ?? 0) - (a.flow?.expiresAt.getTime() ?? 0));
  return [
    cookieText(nameOf(s), signText(purpose, body, keys), { maxAge: lifeSeconds }),
    ...open.slice(maximumFlows - 1).map(({ name }) => cookieText(name, '', { maxAge: 0 })),
  ];
}

/** The flow of a callback's `state`; null when this browser has none, or its ten minutes are over. */
export function findFlow(
  headers: IncomingHttpHeaders,
  { state, provider }: { state: string; provider: string },
  { keys, now }: { keys: KeySet; now: Date },
): SignInFlow | null {
  for (const [name, text] of cookiesOf(headers)) {
    const flow = name === nameOf(state) ? parse(text, keys) : null;
    if (flow?.state === state && flow.provider === provider && flow.expiresAt > now) return flow;
  }
  return null;
}

/** The `Set-Cookie` that ends a flow: its callback counts once. */
export const endFlow = (state: string): string => cookieText(nameOf(state), '', { maxAge: 0 });

function parse(text: string, keys: KeySet): SignInFlow | null {
  const parsed = payload.safeParse(verifyText(purpose, text, keys));
  if (!parsed.success) return null;
  const { p, s, n, v, r, exp } = parsed.data;
  return { provider: p, state: s, nonce: n, verifier: v, returnTo: r, expiresAt: new Date(exp) };
}

const cookiesOf = ({ cookie = '' }: IncomingHttpHeaders): [string, string][] =>
  cookie.split(';').flatMap((pair): [string, string][] => {
    const [, name, value = ''] = /^\s*(__Host-svc_signin_[\w-]+)=(\S*)\s*$/.exec(pair) ?? [];
    return name === undefined ? [] : [[name, value]];
  });
