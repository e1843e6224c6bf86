import { type PlayerFile, type PlayerFiles } from '@millrace/player';
import { type Exchange } from '../http/exchange.ts';

/** A name that holds the hash of its content never has another. */
const forever = 'public, max-age=31536000, immutable';

/** Serves `/player/{name}`: the page's script, style and logo, to everybody. */
export function createPlayerFiles(files: PlayerFiles): (name: string, exchange: Exchange) => void {
  const byName = new Map((Object.values(files) as PlayerFile[]).map((file) => [file.name, file]));
  return (name, exchange) => {
    const file = byName.get(name);
    if (file === undefined) {
      exchange.refuse('not_found');
      return;
    }
    const brotli = takesBrotli(exchange.header('accept-encoding'));
    const body = brotli ? file.brotli : file.identity;
    const headers = ['Content-Type', file.contentType, 'Cache-Control', forever, 'Vary', 'Accept-Encoding'];
    if (brotli) headers.push('Content-Encoding', 'br');
    exchange.send(headers, body.length, body);
  };
}

/** `Accept-Encoding` names `br` without a weight of 0 (RFC 9110 §12.5.3). */
const takesBrotli = (header: string): boolean =>
  header.split(',').some((coding) => {
    const [name = '', ...parameters] = coding.split(';').map((part) => part.trim().toLowerCase());
    return name === 'br' && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
