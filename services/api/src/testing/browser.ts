export interface Page {
  status: number;
  headers: Headers;
  text: string;
  /** Where the answer leads; null when it does not. */
  location: string | null;
}

/** What a browser does of redirects and cookies, one step at a time. Cookies are kept by origin; attributes are the tests' to check. */
export interface Browser {
  cookies(origin: string): Map<string, string>;
  open(url: string): Promise<Page>;
  /** Opens and goes where it is led, until an address fits; resolves with that address. */
  follow(url: string, until: RegExp): Promise<string>;
}

/** @param hosts where public origins really are */
export function createBrowser(hosts: Readonly<Record<string, string>>): Browser {
  const jars = new Map<string, Map<string, string>>();
  const cookies = (origin: string): Map<string, string> => {
    const jar = jars.get(origin) ?? new Map<string, string>();
    jars.set(origin, jar);
    return jar;
  };
  const open = async (url: string): Promise<Page> => {
    const { origin, pathname, search } = new URL(url);
    const jar = cookies(origin);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(`${hosts[origin] ?? origin}${pathname}${search}`, {
      redirect: 'manual',
      headers: cookie === '' ? {} : { cookie },
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '' || /max-age=0/i.test(line)) jar.delete(name);
      else jar.set(name, value);
    }
    const location = response.headers.get('location');
    return {
      status: response.status,
      headers: response.headers,
      text: await response.text(),
      location: location === null ? null : new URL(location, url).href,
    };
  };
  return {
    cookies,
    open,
    follow: async (url, until) => {
      let at = url;
      while (!until.test(at)) {
        const { location, status, text } = await open(at);
        if (location === null) throw new Error(`led nowhere from ${at}: ${status} ${text.slice(0, 200)}`);
        at = location;
      }
      return at;
    },
  };
}
