import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter } from 'node:path';
import { findExecutable, runQuietly } from './exec.mjs';
import { say, SetupError } from './say.mjs';

/** System tools: the commands that must be on the path (each any of its names), and how to get them. */
const tools = {
  ffmpeg: { commands: [['ffmpeg'], ['ffprobe']], debian: 'ffmpeg', mac: 'brew install ffmpeg' },
  chromium: {
    commands: [['chromium', 'chromium-browser', 'google-chrome']],
    debian: 'chromium',
    mac: 'brew install --cask chromium',
  },
  // Debian's python3 alone cannot make environments; its python3-venv can, and brings python3.
  python: {
    commands: [['python3']],
    debian: 'python3-venv',
    mac: 'brew install python',
    works: canMakeEnvironments,
  },
};

/**
 * Makes sure that the named tools are on the path: installs them with apt when this is root on Debian.
 * @throws SetupError naming what to install, when it cannot.
 */
export async function ensureTools(names, mayUseApt = isRootOnDebian) {
  const missing = missingTools(names);
  if (missing.length === 0) return;
  if (!mayUseApt()) throw new SetupError(howToInstall(missing));
  await installWithApt(missing.map((name) => tools[name].debian));
  const stillMissing = missingTools(names);
  if (stillMissing.length > 0) throw new SetupError(howToInstall(stillMissing));
}

function missingTools(names) {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean);
  const isThere = (aliases) => aliases.some((alias) => findExecutable(folders, alias) !== undefined);
  return names.filter((name) => !tools[name].commands.every(isThere) || tools[name].works?.() === false);
}

function canMakeEnvironments() {
  return spawnSync('python3', ['-c', 'import ensurepip, venv'], { stdio: 'ignore' }).status === 0;
}

function isRootOnDebian() {
  return process.getuid?.() === 0 && existsSync('/etc/debian_version');
}

function howToInstall(names) {
  if (process.platform === 'darwin') {
    return `please install first: ${names.map((name) => tools[name].mac).join(' && ')}`;
  }
  const packages = names.map((name) => tools[name].debian).join(' ');
  return `please install first: ${packages} (on Debian: sudo apt-get update && sudo apt-get install ${packages})`;
}

async function installWithApt(packages) {
  say(`installing ${packages.join(', ')} with apt-get`);
  const started = Date.now();
  const options = { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } };
  const apt = ['-q', '-y', '-o', 'DPkg::Lock::Timeout=300', '-o', 'Acquire::Retries=3'];
  const steps = [
    // Finishes what an interrupted installation left half done; does nothing otherwise.
    ['dpkg', ['--configure', '-a', '--force-confdef']],
    ['apt-get', [...apt, 'update']],
    ['apt-get', [...apt, '--fix-broken', '--no-install-recommends', 'install', ...packages]],
  ];
  for (const [command, args] of steps) {
    if (!(await runQuietly(command, args, options))) {
      throw new SetupError(`${packages.join(', ')} could not be installed; run the command again to retry`);
    }
  }
  say(`${packages.join(', ')} installed in ${((Date.now() - started) / 1000).toFixed(0)} s`);
}
