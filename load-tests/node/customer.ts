/** A service whose operator we are. */
export interface OwnService {
  api: string;
  admin: string;
  adminToken: string;
  /** Runs a command of the operator's command line and returns its JSON. */
  millrace: (...args: string[]) => Promise<unknown>;
}

/** Signs a customer up without limits to speak of, and returns what the load tests have to know, by its variable. */
export async function signUp({
  api,
  admin,
  adminToken,
  millrace,
}: OwnService): Promise<Record<string, string>> {
  const unique = `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 8)}`;
  const hostname = `load-${unique}.example.com`;
  const email = `load-${unique}@example.com`;
  const made = await millrace('account', 'create', '--name', 'Load', '--email', email, '--plan', 'agency');
  const accountId = (made as { account: { id: string } }).account.id;
  const project = (await millrace('project', 'create', '--account', accountId, '--name', 'Load')) as {
    id: string;
  };
  const [key] = await Promise.all([
    millrace('key', 'create', '--project', project.id) as Promise<{ value: string }>,
    millrace('domain', 'add', '--project', project.id, '--hostname', hostname, '--verified'),
  ]);
  return {
    ...{ API_URL: api, PROJECT_ID: project.id, API_KEY: key.value, DOMAIN: hostname },
    ...{ ADMIN_URL: admin, ADMIN_TOKEN: adminToken },
  };
}
