/**
 * A sign-in of somebody else, up to its last step.
 * @returns where the provider leads back to, and the API's cookies of this sign-in, `name=value`
 */
export async function signInElsewhere(
  apiAddress: string,
  email: string,
): Promise<{ callback: string; cookies: string[] }> {
  const start = await fetch(`${apiAddress}/auth/google/start`, { redirect: 'manual' });
  const provider = new Set<string>();
  const go = async (url: string, form?: URLSearchParams): Promise<string> => {
    const headers = { cookie: [...provider].join('; ') };
    const post = form === undefined ? {} : { method: 'POST', body: form };
    const response = await fetch(url, { ...post, headers, redirect: 'manual' });
    for (const cookie of cookiesOf(response)) provider.add(cookie);
    return new URL(response.headers.get('location') ?? '', url).href;
  };
  const form = await go(start.headers.get('location') ?? '');
  const answered = await go(form, new URLSearchParams({ email, verified: 'on', do: 'sign-in' }));
  return { callback: await go(answered), cookies: cookiesOf(start) };
}

const cookiesOf = ({ headers }: Response): string[] =>
  headers.getSetCookie().map((line) => line.split(';')[0] ?? '');
