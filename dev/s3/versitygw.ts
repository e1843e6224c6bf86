import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runQuietly } from '../../scripts/setup/exec.mjs';
import { withLock } from '../../scripts/setup/lock.mjs';

const module = fileURLToPath(new URL('.', import.meta.url));
const tool = 'github.com/versity/versitygw/cmd/versitygw';
const buildFlags = ['-trimpath', '-ldflags', '-s -w'];
const buildEnv = { CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '' };

/**
 * Versitygw 1.8.0 takes a body that breaks off for a whole one, and its part for full; its next release does not
 * (versity/versitygw#2415). Until then the cause is mended here: the end of a connection is not the end of a body.
 * (Its readers take `io.ErrUnexpectedEOF` for an end as well, hence the other error.)
 */
const backport = {
  module: 'github.com/valyala/fasthttp',
  file: 'streaming.go',
  from: '\tn, err = rs.reader.Read(p)\n\trs.totalBytesRead += n\n\tif err != nil {\n\t\treturn n, err\n\t}\n',
  to:
    '\tn, err = rs.reader.Read(p)\n\trs.totalBytesRead += n\n' +
    '\tif err == io.EOF && rs.totalBytesRead < rs.header.ContentLength() {\n\t\treturn n, io.ErrClosedPipe\n\t}\n' +
    '\tif err != nil {\n\t\treturn n, err\n\t}\n',
};

/** What this machine lacks to run versitygw, in a sentence for people; null when nothing. */
export function missingForS3(): string | null {
  if (existsSync(programPath())) return null;
  const { error } = spawnSync('go', ['version'], { stdio: 'ignore' });
  return error === undefined
    ? null
    : 'Go (1.25 or later, the command `go`) builds the S3 server of the tests';
}

/**
 * The path of versitygw, an S3 server, in the versions that `go.sum` names. Built once, for a minute or two, and kept
 * in the cache; processes that want it meanwhile wait.
 * @throws when it cannot be built
 */
export async function versitygw(): Promise<string> {
  const program = programPath();
  if (existsSync(program)) return program;
  const folder = dirname(program);
  mkdirSync(dirname(folder), { recursive: true });
  await withLock(`${folder}.lock`, async (onStart) => {
    if (existsSync(program)) return;
    const build = `${folder}.build`;
    rmSync(build, { recursive: true, force: true });
    mkdirSync(build);
    const go = (...args: string[]): Promise<boolean> =>
      // Whatever else the machine does comes first.
      runQuietly('nice', ['-n', '10', 'go', ...args], {
        onStart,
        cwd: build,
        env: { ...process.env, ...buildEnv },
      });
    for (const file of ['go.mod', 'go.sum']) cpSync(join(module, file), join(build, file));
    const built =
      (await go('mod', 'download')) &&
      (await mend(build, go)) &&
      (await go('build', ...buildFlags, '-o', 'bin/versitygw', tool));
    if (!built) throw new Error(missingForS3() ?? 'versitygw could not be built');
    renameSync(join(build, 'bin'), folder);
    rmSync(build, { recursive: true });
  });
  return program;
}

/** Puts a mended copy in the place of a module. */
async function mend(build: string, go: (...args: string[]) => Promise<boolean>): Promise<boolean> {
  const { module: path, file, from, to } = backport;
  const { stdout } = spawnSync('go', ['list', '-m', '-f', '{{.Dir}}', path], {
    cwd: build,
    encoding: 'utf8',
  });
  const copy = join(build, 'mended');
  cpSync(stdout.trim(), copy, { recursive: true });
  const source = join(copy, file);
  chmodSync(source, 0o644);
  const text = readFileSync(source, 'utf8');
  if (text.split(from).length !== 2) throw new Error(`${path} is no longer what the backport is for`);
  writeFileSync(
    source,
    text.replace(from, () => to),
  );
  return go('mod', 'edit', `-replace=${path}=./mended`);
}

function programPath(): string {
  const cache = process.env['MILLRACE_CACHE'] || join(homedir(), '.cache', 'millrace');
  const hash = createHash('sha256').update(readFileSync(join(module, 'go.sum')));
  hash.update(JSON.stringify([tool, buildFlags, buildEnv, backport, process.platform, process.arch]));
  return join(cache, `versitygw-${hash.digest('hex').slice(0, 16)}`, 'versitygw');
}
