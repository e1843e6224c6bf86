import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { runDemo } from './demo.ts';
import { createReport, DemoFailure } from './report.ts';
import { attachStack, type Stack, startStack } from './stack.ts';

const usage = `usage: npm run demo [-- [FILE] [--keep] [--data DIR] [--attach READY_FILE]]

  FILE      what to upload; the sample unless told
  --keep    stay up afterwards, until Ctrl-C
  --data    data folder to use; a temporary one unless told
  --attach  use the service that wrote this ready file (with --data: its data folder)
`;

/** Runs the demo. @returns the exit code: 0 when all was as promised, 1 with the first thing that was not, 2 for wrong usage */
export async function run(args: readonly string[], out: NodeJS.WriteStream): Promise<number> {
  const options = readOptions(args);
  if (options === null) {
    out.write(usage);
    return 2;
  }
  const stopping = new AbortController();
  const onSignal = (): void => stopping.abort(new Error('interrupted'));
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  const report = createReport(out);
  let stack: Stack | undefined;
  try {
    stack = await report.check(
      'service ready',
      () => startOrAttach(options, stopping.signal),
      ({ api, cdn }) => `API ${api}, CDN ${cdn}`,
    );
    const { token } = await runDemo({ stack, report, file: options.file, signal: stopping.signal });
    out.write(`\nAll as promised:\n\n${report.table()}\n\n`);
    if (options.keep) await stay(out, token.playlistUrl ?? token.embedUrl, stopping.signal);
    return 0;
  } catch (error) {
    if (stopping.signal.aborted) {
      out.write('\ninterrupted\n');
      return 130;
    }
    if (!(error instanceof DemoFailure)) throw error;
    out.write(`\nFAILED at ${error.message}\n`);
    return 1;
  } finally {
    await stack?.stop();
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

interface Options {
  file?: string | undefined;
  keep: boolean;
  dataDir?: string | undefined;
  attach?: string | undefined;
}

function readOptions(args: readonly string[]): Options | null {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { keep: { type: 'boolean' }, data: { type: 'string' }, attach: { type: 'string' } },
    });
    if (positionals.length > 1 || (values.attach !== undefined && values.data === undefined)) return null;
    const path = (given: string | undefined): string | undefined =>
      given === undefined ? undefined : resolve(given);
    return {
      file: path(positionals[0]),
      keep: values.keep ?? false,
      dataDir: path(values.data),
      attach: path(values.attach),
    };
  } catch {
    return null;
  }
}

const startOrAttach = ({ attach, dataDir }: Options, signal: AbortSignal): Promise<Stack> =>
  attach === undefined ? startStack({ dataDir, signal }) : attachStack(attach, dataDir ?? '');

async function stay(out: NodeJS.WriteStream, url: string, signal: AbortSignal): Promise<void> {
  out.write(`Still up, until Ctrl-C. Master playlist:\n  ${url}\n`);
  await new Promise<void>((resolveStay) => {
    if (signal.aborted) resolveStay();
    signal.addEventListener('abort', () => resolveStay(), { once: true });
  });
}
