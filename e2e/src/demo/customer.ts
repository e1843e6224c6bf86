import { createClient, type Client } from '@millrace/client';
import { type Stack } from './stack.ts';

/** A customer's server: an account with a project, a key and a verified domain. */
export interface Customer {
  client: Client;
  accountId: string;
  /** Who may sign in to the dashboard. */
  userId: string;
  projectId: string;
  domain: string;
}

const text = (value: unknown, ...path: string[]): string => {
  let at = value;
  for (const step of path) at = (at as Record<string, unknown> | undefined)?.[step];
  if (typeof at !== 'string') throw new Error(`the command line answered without ${path.join('.')}`);
  return at;
};

const anyOf = (...signals: (AbortSignal | null | undefined)[]): AbortSignal =>
  AbortSignal.any(signals.filter((signal) => signal instanceof AbortSignal));

/**
 * Signs a customer up by the command line, and verifies its domain through the API and real DNS look-ups.
 * `signal` ends its calls, now and later.
 */
export async function signUp(stack: Stack, plan: string, signal?: AbortSignal): Promise<Customer> {
  const unique = `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 8)}`;
  const domain = `demo-${unique}.example.com`;
  const created = await stack.millrace(
    ...['account', 'create', '--name', 'Demo', '--email', `demo-${unique}@example.com`, '--plan', plan],
  );
  const [accountId, userId] = [text(created, 'account', 'id'), text(created, 'user', 'id')];
  const project = await stack.millrace('project', 'create', '--account', accountId, '--name', 'Demo');
  const projectId = text(project, 'id');
  const key = await stack.millrace('key', 'create', '--project', projectId);
  const client = createClient({
    baseUrl: stack.api,
    bearer: text(key, 'value'),
    fetch: (url, init) => fetch(url, { ...init, signal: anyOf(init?.signal, signal) }),
  });
  const added = await client.addDomain({ projectId, body: { hostname: domain } });
  await stack.millrace('dev', 'txt', added.verification.name, added.verification.value);
  const verified = await client.verifyDomain({ projectId, domainId: added.id });
  if (verified.status !== 'verified')
    throw new Error(`the domain is ${verified.status} after its record was added`);
  return { client, accountId, userId, projectId, domain };
}
