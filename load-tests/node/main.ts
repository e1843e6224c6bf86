/**
 * `npm run load:customer`: signs a customer up at a service on this machine that runs with `--dev`, keeps receivers
 * for its webhooks until Ctrl-C, and writes the variables for the load tests into a file that a shell reads.
 */
import { execFile } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { readFlags } from '../../dev/flags.ts';
import { type OwnService, signUp } from './customer.ts';
import { startReceivers } from './receivers.ts';

const commandLine = fileURLToPath(new URL('../../embedded/src/cli/main.ts', import.meta.url));
const { values: flags } = readFlags('npm run load:customer --', {
  options: {
    'ready-file': { type: 'string', default: '/tmp/millrace.json' },
    output: { type: 'string', default: '/tmp/load.env' },
    data: { type: 'string' },
  },
});
const dataFlags = flags.data === undefined ? [] : ['--data', flags.data];

const millrace: OwnService['millrace'] = async (...args) => {
  const { stdout } = await promisify(execFile)(process.execPath, [
    commandLine,
    ...dataFlags,
    ...args,
    '--json',
  ]);
  return JSON.parse(stdout) as unknown;
};

const readyFile = await readFile(flags['ready-file'], 'utf8').catch((error: unknown) => {
  process.stderr.write(
    `${String(error)}\nStart the service with \`--dev --ready-file ${flags['ready-file']}\` first.\n`,
  );
  process.exit(1);
});
const ready = JSON.parse(readyFile) as Omit<OwnService, 'millrace'>;
const receivers = await startReceivers();
const variables = {
  ...(await signUp({ ...ready, millrace })),
  ...{ WEBHOOK_URL: receivers.url, WEBHOOK_SLOW_URL: receivers.slowUrl, WEBHOOK_DEAD_URL: receivers.deadUrl },
};
const lines = Object.entries(variables).map(([name, value]) => `export ${name}='${value}'\n`);
// It holds a key and the admin token.
await writeFile(flags.output, lines.join(''), { mode: 0o600 });
process.stdout.write(`wrote ${flags.output}; receivers listen until Ctrl-C\n`);
await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
await rm(flags.output, { force: true });
await receivers.stop();
