import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { runDemo } from './demo.ts';
import { type Shop, type ShopPage, startShopPage } from './page.ts';
import { createReport, DemoFailure } from './report.ts';
import { attachStack, type Stack, startStack } from './stack.ts';

const usage = `usage: npm run demo [-- [FILE] [--keep] [--data DIR] [--stack | --attach READY_FILE]]

  FILE      what to upload; the sample unless told
  --keep    stay up afterwards, until Ctrl-C
  --data    data folder to use; a temporary one unless told
  --stack   on Kafka, S3 and a process for each service, instead of the embedded service
  --attach  use the service that wrote this ready file (with --data: its data folder)
`;

/** Ctrl-C reaches the demo from the terminal and through npm: signals within this time count as one. */
const sameSignalMs = 1_000;

/** Runs the demo. @returns the exit code: 0 when all was as promised, 1 with the first thing that was not, 2 for wrong usage, 130 when interrupted */
export async function run(args: readonly string[], out: NodeJS.WriteStream): Promise<number> {
  const options = readOptions(args);
  if (options === null) {
    out.write(usage);
    return 2;
  }
  const stopping = stopOnSignals();
  const report = createReport(out);
  let stack: Stack | undefined;
  try {
    const { file } = options;
    if (file !== undefined)
      await report.check(
        'file',
        () => readable(file),
        (bytes) => `${bytes} bytes`,
      );
    stack = await report.check(
      'service ready',
      () => startOrAttach(options, stopping),
      ({ api, cdn }) => `API ${api}, CDN ${cdn}`,
    );
    const shop = await runDemo({ stack, report, file, signal: stopping });
    out.write(`\nAll as promised:\n\n${report.table()}\n\n`);
    if (options.keep) await stay(out, stack, shop, stopping);
    return 0;
  } catch (error) {
    if (stopping.aborted) {
      out.write('\ninterrupted\n');
      return 130;
    }
    if (!(error instanceof DemoFailure)) throw error;
    out.write(`\n${report.table()}\n\nFAILED at ${error.message}\n`);
    const lastWords = stack?.lastWords() ?? null;
    if (lastWords !== null) out.write(`\nThe service has ended. Its last words:\n${lastWords}\n`);
    return 1;
  } finally {
    await stack?.stop();
  }
}

/** Aborts at the first signal; a later one ends this process at once, and the service follows. */
function stopOnSignals(): AbortSignal {
  const stopping = new AbortController();
  let firstAt = 0;
  const onSignal = (): void => {
    if (!stopping.signal.aborted) {
      firstAt = Date.now();
      stopping.abort(new Error('interrupted'));
    } else if (Date.now() - firstAt > sameSignalMs) {
      process.exit(130);
    }
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
  return stopping.signal;
}

/** @returns its size in bytes @throws Error when it cannot be uploaded */
async function readable(path: string): Promise<number> {
  const file = await open(path);
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw new Error(`${path} is not a file`);
    return stats.size;
  } finally {
    await file.close();
  }
}

interface Options {
  file?: string | undefined;
  keep: boolean;
  dataDir?: string | undefined;
  stack: boolean;
  attach?: string | undefined;
}

function readOptions(args: readonly string[]): Options | null {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        ...{ keep: { type: 'boolean' }, stack: { type: 'boolean' } },
        ...{ data: { type: 'string' }, attach: { type: 'string' } },
      },
    });
    const { stack = false, attach } = values;
    if (positionals.length > 1 || (attach !== undefined && (values.data === undefined || stack))) return null;
    const path = (given: string | undefined): string | undefined =>
      given === undefined ? undefined : resolve(given);
    return {
      file: path(positionals[0]),
      keep: values.keep ?? false,
      dataDir: path(values.data),
      stack,
      attach: path(attach),
    };
  } catch {
    return null;
  }
}

const startOrAttach = ({ attach, dataDir, stack }: Options, signal: AbortSignal): Promise<Stack> =>
  attach === undefined
    ? startStack({ dataDir, signal, distributed: stack })
    : attachStack(attach, dataDir ?? '', signal);

async function stay(
  out: NodeJS.WriteStream,
  { api, cdn }: Stack,
  shop: Shop,
  signal: AbortSignal,
): Promise<void> {
  const { domain, token } = shop;
  const { playlistUrl, embedUrl, expiresAt } = token;
  // Without openssl there is no certificate for it.
  const page = await startShopPage(shop).catch(() => null);
  const lines = [
    ['API', api],
    ['CDN', cdn],
    ['master playlist', playlistUrl ?? 'only with white label'],
    ['token good until', expiresAt],
  ].map(([name = '', value = '']) => `  ${name.padEnd(16)}  ${value}\n`);
  out.write(`Still up, until Ctrl-C:\n${lines.join('')}
Open the player in a browser on this machine (paste the address: from a link on another site it is refused):

  ${embedUrl}

It plays there by itself until its token expires, and in frames on https://${domain}, nowhere else.
${page === null ? '' : howToOpen(page)}`);
  // Nothing else keeps this process alive when the service is somebody else's.
  const alive = setInterval(() => undefined, 60_000);
  await new Promise<void>((resolveStay) => {
    if (signal.aborted) resolveStay();
    signal.addEventListener('abort', () => resolveStay(), { once: true });
  });
  clearInterval(alive);
  await page?.stop();
}

const howToOpen = ({ url, browserFlags }: ShopPage): string => `
A customer's page with such a frame, which renews its token, is served here too. A browser has to be told where:

  chromium --user-data-dir=/tmp/millrace-browser ${browserFlags.map((flag) => `'${flag}'`).join(' ')} ${url}
`;
