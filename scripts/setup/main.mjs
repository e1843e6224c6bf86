import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch } from './launch.mjs';
import { ensurePackages, projectNode } from './packages.mjs';
import { ensureSchemathesis } from './python.mjs';
import { SetupError, say } from './say.mjs';
import { ensureTools } from './system.mjs';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Each command: its entry, the system tools it needs, and whether relative paths are the caller's. */
const commands = {
  start: { entry: 'embedded/src/main.ts', tools: () => ['ffmpeg'], inCallersFolder: true },
  stack: { entry: 'dev/stack/main.ts', tools: () => ['ffmpeg'], inCallersFolder: true },
  demo: { entry: 'e2e/src/demo/main.ts', tools: () => ['ffmpeg'], inCallersFolder: true },
  millrace: { entry: 'embedded/src/cli/main.ts', tools: () => [], inCallersFolder: true },
  test: { entry: 'scripts/test.ts', tools: toolsForTests },
  'test:contract': {
    entry: 'scripts/test.ts',
    args: ['services/api/src/outsiders'],
    tools: () => ['python'],
    env: { MILLRACE_EXAMPLES: '100' },
  },
  'test:faults': { entry: 'scripts/test.ts', args: ['e2e/src/faults/'], tools: () => ['ffmpeg'] },
  'bench:api': { entry: 'bench/src/api.ts', tools: () => [] },
  'bench:bus': { entry: 'bench/src/bus.ts', tools: () => [] },
  'bench:changes': { entry: 'bench/src/changes.ts', tools: () => ['ffmpeg'] },
  'bench:encode': { entry: 'bench/src/encode.ts', tools: () => ['ffmpeg'] },
  'bench:holds': { entry: 'bench/src/holds.ts', tools: () => ['ffmpeg'] },
  'bench:uploads': { entry: 'bench/src/uploads.ts', tools: () => ['ffmpeg'] },
  'bench:webhooks': { entry: 'bench/src/webhooks.ts', tools: () => [] },
  'load:customer': { entry: 'load-tests/node/main.ts', tools: () => [], inCallersFolder: true },
  check: { entry: 'scripts/test.ts', args: ['--checks'], tools: () => [] },
  mutate: { entry: 'scripts/mutate.ts', tools: () => [] },
};

/** Runs one command of package.json; ends the process with the entry's own exit code or signal. */
export async function main([name, ...args]) {
  const command = Object.hasOwn(commands, name ?? '') ? commands[name] : undefined;
  if (!command) {
    say(`usage: node scripts/run.mjs ${Object.keys(commands).join('|')} [arguments]`);
    process.exitCode = 2;
    return;
  }
  try {
    await ensurePackages(root);
    const tools = command.tools(args);
    await ensureTools(tools);
    if (tools.includes('python')) await ensureSchemathesis(root);
    Object.assign(process.env, command.env);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(error.message);
    process.exitCode = 1;
    return;
  }
  await launch(projectNode(root), [join(root, command.entry), ...(command.args ?? []), ...args], {
    cwd: command.inCallersFolder ? callersFolder() : root,
  });
}

/** Where the user typed the command: npm moves to the project's folder and remembers the first one. */
function callersFolder() {
  const first = process.env.npm_lifecycle_event && process.env.INIT_CWD;
  return first && existsSync(first) ? first : process.cwd();
}

/** Chromium and Python only when the tests that need them are not filtered away. */
function toolsForTests(filters) {
  const folder = join(root, 'e2e/src/browser');
  const files = existsSync(folder) ? readdirSync(folder, { recursive: true }) : [];
  const browserTests = files
    .map((file) => join('e2e/src/browser', String(file)))
    .filter((file) => file.endsWith('.e2e.test.ts'));
  const isWanted = (tests, suite) =>
    tests.some(
      (file) => filters.length === 0 || filters.some((filter) => filter === suite || file.includes(filter)),
    );
  const fromOutside = isWanted(['services/api/src/outsiders/schemathesis.int.test.ts'], 'integration');
  return [
    'ffmpeg',
    ...(isWanted(browserTests, 'e2e') ? ['chromium'] : []),
    ...(fromOutside ? ['python'] : []),
  ];
}
