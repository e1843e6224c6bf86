import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { writeProgram } from './testing/clone.ts';

const system = new URL('system.mjs', import.meta.url).href;
/** Asks for the tools in a process whose path is the test's folder alone, and prints the message of a refusal. */
const ask = `
const { ensureTools } = await import(${JSON.stringify(system)});
const [mayUseApt, ...names] = process.argv.slice(1);
await ensureTools(names, () => mayUseApt === 'yes').catch((error) => {
  console.log(error.message);
  process.exitCode = error.name === 'SetupError' ? 1 : 70;
});
`;

describe('the system tools', () => {
  let bin: string;
  beforeEach(async () => {
    bin = await mkdtemp(join(tmpdir(), 'millrace-tools-'));
    mkdirSync(join(bin, 'state'));
    writeProgram(join(bin, 'dpkg'), `#!/bin/sh\necho dpkg "$@" >> "${bin}/state/calls"\n`);
    // Fails while state/broken exists; "installs" by making the commands of the packages.
    writeProgram(
      join(bin, 'apt-get'),
      `#!/bin/sh
echo apt-get "$@" >> "${bin}/state/calls"
case "$*" in *" install "*) ;; *) exit 0 ;; esac
[ -e "${bin}/state/broken" ] && { echo "E: no space left" >&2; exit 100; }
for name in ffmpeg ffprobe chromium; do
  case "$name $*" in ffprobe*|ffmpeg*install*ffmpeg*|chromium*install*chromium*)
    printf '#!/bin/sh\\n' > "${bin}/$name"; /bin/chmod 755 "${bin}/$name" ;;
  esac
done
`,
    );
  });
  afterEach(() => rm(bin, { recursive: true }));

  const ensure = (mayUseApt: 'yes' | 'no', ...names: string[]) => {
    const args = ['--input-type=module', '-e', ask, mayUseApt, ...names];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, {
      env: { PATH: bin },
      encoding: 'utf8',
    });
    return { status, stdout, stderr };
  };
  const calls = (): string[] => {
    const path = join(bin, 'state/calls');
    return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : [];
  };

  it('are installed once, after a fresh list and what an interruption left half done', () => {
    expect(ensure('yes', 'ffmpeg')).toMatchObject({ status: 0, stdout: '' });
    expect(calls()).toEqual([
      expect.stringContaining('--configure -a'),
      expect.stringMatching(/ update$/),
      expect.stringMatching(/ install ffmpeg$/),
    ]);
    expect(ensure('yes', 'ffmpeg')).toEqual({ status: 0, stdout: '', stderr: '' });
    expect(calls()).toHaveLength(3);
  });

  it('are named where they cannot be installed', () => {
    const refused = ensure('no', 'ffmpeg', 'chromium');
    expect(refused).toMatchObject({ status: 1, stderr: '' });
    expect(refused.stdout).toMatch(/please install first: .*ffmpeg.*chromium/);
    expect(calls()).toEqual([]);
  });

  it('are missing while one of their commands is', () => {
    writeProgram(join(bin, 'ffmpeg'), '#!/bin/sh\n');
    expect(ensure('no', 'ffmpeg')).toMatchObject({ status: 1 });
    writeProgram(join(bin, 'ffprobe'), '#!/bin/sh\n');
    expect(ensure('no', 'ffmpeg')).toMatchObject({ status: 0 });
  });

  it('may have another name', () => {
    writeProgram(join(bin, 'google-chrome'), '#!/bin/sh\n');
    expect(ensure('no', 'chromium')).toMatchObject({ status: 0 });
  });

  it('are installed by the next run when apt fails, which shows why', () => {
    writeProgram(join(bin, 'state/broken'), '');
    const failed = ensure('yes', 'ffmpeg');
    expect(failed).toMatchObject({ status: 1 });
    expect(failed.stderr).toContain('no space left');
    rmSync(join(bin, 'state/broken'));
    expect(ensure('yes', 'ffmpeg')).toMatchObject({ status: 0 });
  });
});
