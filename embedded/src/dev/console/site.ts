import { readFile } from 'node:fs/promises';
import { type IncomingMessage, type ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { type Site } from '@millrace/platform';
import { consolePage } from './page.ts';

const inBrowser = (name: string): string => fileURLToPath(new URL(`browser/${name}`, import.meta.url));

/** Where browsers reach what the console shows and calls. */
interface Places {
  api: string;
  cdn: string;
  upload: string;
}

/**
 * The development console, `/dev/` on the API's own origin: signs in, and calls every route that takes a session. It
 * may stand on a dashboard host just as well, whose proxy passes it on; it calls the API at its own address.
 */
export function createConsoleSite({ api, cdn, upload }: Places): Site {
  const originOf = (url: string): string => new URL(url).origin;
  const policy = [
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:",
    `connect-src ${originOf(api)} ${originOf(upload)}; frame-src ${originOf(cdn)}`,
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  ].join('; ');
  let script: Promise<string> | undefined;
  const files: Readonly<Record<string, () => { type: string; text: Promise<string> | string }>> = {
    '/': () => ({ type: 'text/html', text: consolePage(api) }),
    '/console.css': () => ({ type: 'text/css', text: readFile(inBrowser('console.css'), 'utf8') }),
    '/console.js': () => ({ type: 'text/javascript', text: (script ??= buildScript()) }),
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<boolean> => {
    const file = Object.hasOwn(files, request.url ?? '') ? files[request.url ?? '']?.() : undefined;
    if (file === undefined || !['GET', 'HEAD'].includes(request.method ?? '')) return false;
    const text = await file.text;
    response.setHeader('Content-Type', `${file.type}; charset=utf-8`);
    response.setHeader('Content-Security-Policy', policy);
    response.end(text);
    return true;
  };
  return {
    path: '/dev',
    handler: (request, response, next) => {
      answer(request, response).then((done) => {
        if (!done) next();
      }, next);
    },
  };
}

/** In memory, at its first use. */
async function buildScript(): Promise<string> {
  const esbuild = await import('esbuild');
  try {
    const { outputFiles } = await esbuild.build({
      entryPoints: [inBrowser('main.ts')],
      ...{ bundle: true, write: false, format: 'iife', target: 'es2024', logLevel: 'silent' },
    });
    return outputFiles[0]?.text ?? '';
  } finally {
    await esbuild.stop();
  }
}
