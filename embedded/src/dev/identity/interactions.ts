import { type IncomingMessage, type ServerResponse } from 'node:http';
import { type default as Provider, errors } from 'oidc-provider';
import { overPage, signInPage } from './page.ts';
import { type Client, createPeople, createProvider, type People, type Person } from './provider.ts';

const maximumFormBytes = 4_096;
/** No `form-action`: it would hold for where the provider leads on to, too. */
const policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'";

/** Answers every request to the provider, its sign-in form among them. */
export async function createIdentityHandler(
  issuer: string,
  client: Client,
): Promise<(request: IncomingMessage, response: ServerResponse) => Promise<void>> {
  const people = createPeople();
  const provider = await createProvider(issuer, client, people);
  const handle = provider.callback();
  return async (request, response) => {
    forgetSession(request);
    if (request.url?.startsWith('/interaction/') !== true) {
      await handle(request, response);
      return;
    }
    await interact(provider, people, request, response).catch((error: unknown) => {
      if (!(error instanceof errors.OIDCProviderError)) throw error;
      sendPage(response, 400, overPage());
    });
  };
}

/**
 * Takes the cookie of an earlier sign-in away: a developer is somebody else each time, and the API's sign-out ends no
 * session here.
 */
function forgetSession({ headers }: IncomingMessage): void {
  const kept = (headers.cookie ?? '').split('; ').filter((pair) => !pair.startsWith('_session'));
  headers.cookie = kept.join('; ');
}

async function interact(
  provider: Provider,
  people: People,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { uid, params } = await provider.interactionDetails(request, response);
  const action = `/interaction/${uid}`;
  if (request.method !== 'POST') {
    sendPage(response, 200, signInPage({ action, client: String(params['client_id']) }));
    return;
  }
  const form = await readForm(request);
  if (form === null) {
    response.destroy();
    return;
  }
  const email = form.get('email')?.trim() ?? '';
  const cancelled = form.get('do') === 'cancel' || email === '';
  const result = cancelled
    ? { error: 'access_denied', error_description: 'cancelled by the developer' }
    : { login: { accountId: people.note(personOf(email, form)), remember: false } };
  await provider.interactionFinished(request, response, result);
}

const personOf = (email: string, form: URLSearchParams): Person => ({
  email,
  name: form.get('name')?.trim() ?? '',
  verified: form.get('verified') === 'on',
});

/** The fields of a form; null for one that is longer than ours can be. */
async function readForm(request: IncomingMessage): Promise<URLSearchParams | null> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk as string;
    if (text.length > maximumFormBytes) return null;
  }
  return new URLSearchParams(text);
}

function sendPage(response: ServerResponse, status: number, html: string): void {
  response.writeHead(status, {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': policy,
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  });
  response.end(html);
}
