import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { findExecutable, runQuietly } from './exec.mjs';
import { withLock } from './lock.mjs';
import { say, SetupError } from './say.mjs';

const OLDEST_NPM = 11;

/** The project's own Node.js, which the lock file pins. */
export const projectNode = (root) => join(root, 'node_modules/node/bin/node');

/**
 * Makes `node_modules` what the lock file says, with `npm ci` when it is missing, stale or half made.
 * @throws SetupError when npm is missing, too old, or fails.
 */
export async function ensurePackages(root) {
  if (isInstalled(root)) return;
  await withLock(join(root, '.cache/setup.lock'), async (onStart) => {
    if (isInstalled(root)) return;
    if (!matchesLockFile(root)) await install(root, onStart);
    mark(root);
  });
}

const marker = (root) => join(root, 'node_modules/.millrace-installed');

/** The marker is written last, so it is there only after a whole installation of this very lock file. */
function isInstalled(root) {
  return read(marker(root)) === lockKey(root) && existsSync(projectNode(root));
}

function mark(root) {
  const aside = `${marker(root)}.new`;
  writeFileSync(aside, lockKey(root));
  renameSync(aside, marker(root));
}

function lockKey(root) {
  const hash = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
  return `${hash} ${process.platform}-${process.arch}\n`;
}

/**
 * True when npm itself says that it has installed just this: it writes `node_modules/.package-lock.json` as its last
 * step. It spares a developer who ran `npm install` from waiting for everything once more.
 */
function matchesLockFile(root) {
  const installed = packagesOf(join(root, 'node_modules/.package-lock.json'));
  const wanted = packagesOf(join(root, 'package-lock.json'));
  if (!installed || !wanted || !existsSync(projectNode(root))) return false;
  const known = Object.entries(wanted).every(([path, entry]) => {
    if (!path.startsWith('node_modules/') && !path.includes('/node_modules/')) return true;
    const there = installed[path];
    if (!there) return entry.optional === true || entry.devOptional === true || entry.peer === true;
    const sameContent = !there.integrity || !entry.integrity || there.integrity === entry.integrity;
    return there.version === entry.version && there.link === entry.link && sameContent;
  });
  return known && Object.keys(installed).every((path) => path in wanted);
}

function packagesOf(path) {
  try {
    return JSON.parse(read(path) ?? '{}').packages;
  } catch {
    return undefined;
  }
}

async function install(root, onStart) {
  const npm = npmCommand(root);
  checkNpm(npm);
  const started = Date.now();
  say('installing the packages of package-lock.json (once; about half a minute)');
  rmSync(marker(root), { force: true });
  // Development packages always: the same folder serves `npm start` and `npm test`, whatever NODE_ENV says.
  const args = ['ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error'];
  const done = await runQuietly(npm.command, [...npm.args, ...args], { cwd: root, env: npm.env, onStart });
  if (!done) throw new SetupError('the packages could not be installed; run the command again to retry');
  if (!existsSync(projectNode(root))) {
    throw new SetupError(
      `npm finished, but ${projectNode(root)} is missing (were install scripts switched off?)`,
    );
  }
  say(`packages installed in ${((Date.now() - started) / 1000).toFixed(0)} s`);
}

/**
 * npm under a Node.js that lives outside `node_modules`: npm puts `node_modules/.bin` first on the path, and `npm ci`
 * deletes the Node.js in there while it runs.
 */
function npmCommand(root) {
  const inside = join(root, 'node_modules');
  const path = (process.env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '' && !folder.startsWith(inside));
  const env = { ...process.env, PATH: path.join(delimiter) };
  const node = process.execPath.startsWith(inside) ? findExecutable(path, 'node') : process.execPath;
  const cli = process.env.npm_execpath;
  if (node && cli && /npm-cli\.c?js$/.test(cli) && existsSync(cli))
    return { command: node, args: [cli], env };
  const npm = findExecutable(path, 'npm');
  if (!npm) throw new SetupError(`npm ${OLDEST_NPM} or later is needed, and no npm is on the path`);
  return { command: npm, args: [], env };
}

function checkNpm({ command, args, env }) {
  const { stdout } = spawnSync(command, [...args, '--version'], { env, encoding: 'utf8' });
  const version = (stdout ?? '').trim();
  if (Number(version.split('.')[0]) >= OLDEST_NPM) return;
  const found = version === '' ? 'npm did not answer' : `found ${version}`;
  throw new SetupError(
    `npm ${OLDEST_NPM} or later is needed, ${found}: run "npm install -g npm@${OLDEST_NPM}"`,
  );
}

function read(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error;
    return undefined;
  }
}
