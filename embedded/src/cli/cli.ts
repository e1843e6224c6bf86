import { parseArgs } from 'node:util';
import { BusRequestError } from '@millrace/bus';
import { ProblemError } from '@millrace/contract';
import { createLogger, type Logger } from '@millrace/platform';
import { dataFolder } from '../data-folder/location.ts';
import { readRunFile } from '../data-folder/run-file.ts';
import { sentenceFor } from '../sentence-for.ts';
import { type Backend, embeddedBackend } from './backend.ts';
import { type Command, CommandUsageError, commands, type Flags } from './commands.ts';
import { distributedBackend } from './distributed.ts';

/**
 * Runs one command on a data folder, whether its service runs or not, or on the distributed services by their settings.
 * Prints one JSON document on standard output;
 * errors go to standard error.
 * @returns the exit code: 0, 1 when the command failed, 2 for wrong usage
 */
export async function runCli(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const logger = createLogger({
    service: 'cli',
    level: env['LOG_LEVEL'] === 'debug' || env['LOG_LEVEL'] === 'warn' ? env['LOG_LEVEL'] : 'error',
    destination: process.stderr,
  });
  try {
    const call = parseCall(args);
    if (call === 'help') {
      process.stdout.write(usageOf());
      return 0;
    }
    const result = await runCommand(call, env, logger);
    process.stdout.write(`${JSON.stringify(result, null, call.json ? undefined : 2)}\n`);
    return 0;
  } catch (error) {
    if (error instanceof CommandUsageError) {
      process.stderr.write(`${error.message}\n\n${usageOf()}`);
      return 2;
    }
    process.stderr.write(`${describe(error)}\n`);
    return 1;
  }
}

interface Call {
  dataDir: string | undefined;
  json: boolean;
  command: Command;
  values: readonly string[];
  flags: Flags;
}

function parseCall(args: readonly string[]): Call | 'help' {
  if (args.length === 0 || args.includes('--help')) return 'help';
  const first = args.findIndex((arg, i) => !arg.startsWith('-') && args[i - 1] !== '--data');
  const words = args.slice(Math.max(first, 0));
  const two = `${words[0] ?? ''} ${words[1] ?? ''}`;
  const name = Object.hasOwn(commands, two) ? two : (words[0] ?? '');
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (first < 0 || !command) {
    const said = words.slice(0, 2).filter((word) => !word.startsWith('-'));
    throw new CommandUsageError(`there is no command "${said.join(' ')}"`);
  }
  const rest = [...args.slice(0, first), ...words.slice(name.split(' ').length)];
  const { values, positionals } = parseFlags(command, rest);
  if (positionals.length !== command.values.length) {
    throw new CommandUsageError(`${name} takes ${command.values.join(' ') || 'no values'}`);
  }
  for (const flag of command.required ?? []) {
    if (typeof values[flag] !== 'string') throw new CommandUsageError(`${name} needs --${flag}`);
  }
  const { data, json, ...flags } = values;
  return {
    dataDir: typeof data === 'string' ? data : undefined,
    json: json === true,
    command,
    values: positionals,
    flags,
  };
}

function parseFlags(command: Command, args: string[]): { values: Flags; positionals: string[] } {
  const withValue = [...(command.required ?? []), ...(command.optional ?? []), 'data'];
  const switches = [...(command.switches ?? []), 'json'];
  const options = Object.fromEntries<{ type: 'string' | 'boolean' }>([
    ...withValue.map((name): [string, { type: 'string' }] => [name, { type: 'string' }]),
    ...switches.map((name): [string, { type: 'boolean' }] => [name, { type: 'boolean' }]),
  ]);
  try {
    const { values, positionals } = parseArgs({ args, allowPositionals: true, options });
    return { values: values, positionals };
  } catch (error) {
    throw new CommandUsageError(error instanceof Error ? error.message : String(error));
  }
}

async function runCommand(
  { dataDir, command, values, flags }: Call,
  env: NodeJS.ProcessEnv,
  logger: Logger,
): Promise<unknown> {
  const folder = dataFolder(dataDir);
  const backend = backendFor({ folder, isNamed: dataDir !== undefined, env, logger });
  try {
    return await command.run({ dataDir: folder, backend, logger }, values, flags);
  } finally {
    await backend.close();
  }
}

/**
 * A data folder's services, which may be processes of their own; without one the environment's, when it says where any of
 * what they stand on is.
 */
function backendFor(options: {
  folder: string;
  isNamed: boolean;
  env: NodeJS.ProcessEnv;
  logger: Logger;
}): Backend {
  const { folder, isNamed, env, logger } = options;
  const isTold = ['DATABASE_URL', 'KAFKA_BROKERS', 'S3_BUCKET'].some((name) => Boolean(env[name]));
  const settings = isNamed || !isTold ? readRunFile(folder)?.settings : env;
  return settings === undefined ? embeddedBackend(folder, logger) : distributedBackend(settings, logger);
}

function usageOf(): string {
  const lines = Object.entries(commands).map(([name, command]) => {
    const words = [
      name,
      ...command.values,
      ...(command.required ?? []).map((flag) => `--${flag} ${flag.toUpperCase()}`),
      ...(command.optional ?? []).map((flag) => `[--${flag} ${flag.toUpperCase()}]`),
      ...(command.switches ?? []).map((flag) => `[--${flag}]`),
    ];
    return `  ${words.join(' ')}`;
  });
  return `usage: npm run -s millrace -- [--data DIR] <noun> <verb> [flags] [--json]\n\n${lines.join('\n')}\n`;
}

function describe(error: unknown): string {
  if (error instanceof ProblemError) {
    const message = error.code === 'not_found' ? 'Nothing has the id that was given.' : error.message;
    return `${error.code}: ${message}`;
  }
  if (error instanceof BusRequestError) return error.message;
  const sentence = sentenceFor(error);
  if (sentence !== null) return sentence;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
