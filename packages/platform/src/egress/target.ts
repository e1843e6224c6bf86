import { isIP } from 'node:net';
import { EgressError } from './egress.ts';

/** Where a URL leads, after the URL standard has made one spelling of every odd one. */
export interface Target {
  /** `https://host:port` as the `Host` header has it: connections are kept by it. */
  origin: string;
  secure: boolean;
  /** A name without final dot, or an address without brackets. */
  host: string;
  /** 0 for a name, else the address's family. */
  family: 0 | 4 | 6;
  port: string;
  /** Path and query. */
  path: string;
}

/** Ports under 1024 belong to other protocols; a mail server would read our request as commands. */
const firstFreePort = 1_024;

/**
 * Reads a URL by the URL standard (decimal, octal, hexadecimal, short and full-width addresses become dotted
 * ones) and checks all that can be told without a look-up.
 * @throws EgressError `url_refused`
 */
export function readTarget(text: string, options: { plainHttp: boolean }): Target {
  const url = URL.parse(text);
  const refuse = (message: string): EgressError => new EgressError('url_refused', message);
  if (url === null) throw refuse('the URL cannot be read');
  const secure = url.protocol === 'https:';
  if (!secure && !(options.plainHttp && url.protocol === 'http:')) throw refuse('the URL is not https');
  if (url.username !== '' || url.password !== '') throw refuse('the URL has user info');
  // The standard leaves the scheme's own port out.
  if (url.port !== '' && Number(url.port) < firstFreePort)
    throw refuse('the port is not 443 or from 1024 on');
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
  if (host === '') throw refuse('the URL has no host');
  return {
    origin: url.origin,
    secure,
    host,
    family: isIP(host) as 0 | 4 | 6,
    port: url.port,
    path: url.pathname + url.search,
  };
}
