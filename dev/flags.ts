import { parseArgs, type ParseArgsConfig } from 'node:util';

/**
 * Reads the flags of a developers' command, as `parseArgs` does. Ends the process with its usage for `--help` (exit
 * code 0), and for what it does not know (2).
 * @param command how it is called, and its positional arguments: `npm test [-- PATTERN…]`
 */
export function readFlags<Config extends ParseArgsConfig>(
  command: string,
  config: Config,
): ReturnType<typeof parseArgs<Config>> {
  try {
    if (!process.argv.slice(2).includes('--help')) return parseArgs(config);
    process.stdout.write(`${usageOf(command, config)}\n`);
    process.exit(0);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.stderr.write(`${usageOf(command, config)}\n`);
    process.exit(2);
  }
}

/** Each flag stands with its default. */
function usageOf(command: string, { options = {} }: ParseArgsConfig): string {
  const flags = Object.entries(options).map(([name, { type, default: value }]) =>
    type === 'boolean' ? `[--${name}]` : `[--${name} ${String(value ?? name.toUpperCase())}]`,
  );
  return ['usage:', command, ...flags].join(' ');
}
