import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runQuietly } from '../../scripts/setup/exec.mjs';
import { say } from '../../scripts/setup/say.mjs';
import { cachedFolder, madeOnce, runs } from '../made-once.ts';

const module = fileURLToPath(new URL('.', import.meta.url));
const tool = 'github.com/versity/versitygw/cmd/versitygw';
const buildFlags = ['-mod=vendor', '-trimpath', '-ldflags', '-s -w'];
const buildEnv = { CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '' };

/**
 * Versitygw 1.8.0 takes a body that breaks off for a whole one, and its part for full; its next release does not
 * (versity/versitygw#2415). Until then the cause is mended here: the end of a connection is not the end of a body.
 * (Its readers take `io.ErrUnexpectedEOF` for an end as well, hence the other error.)
 */
const backport = {
  file: 'github.com/valyala/fasthttp/streaming.go',
  from: '\tn, err = rs.reader.Read(p)\n\trs.totalBytesRead += n\n\tif err != nil {\n\t\treturn n, err\n\t}\n',
  to:
    '\tn, err = rs.reader.Read(p)\n\trs.totalBytesRead += n\n' +
    '\tif err == io.EOF && rs.totalBytesRead < rs.header.ContentLength() {\n\t\treturn n, io.ErrClosedPipe\n\t}\n' +
    '\tif err != nil {\n\t\treturn n, err\n\t}\n',
};

/** What this machine lacks to run versitygw, in a sentence for people; null when nothing. */
export function missingForS3(): string | null {
  if (existsSync(programPath())) return null;
  return runs('go', 'version')
    ? null
    : 'Go (1.25 or later, the command `go`) builds the S3 server of the tests';
}

/**
 * The path of versitygw, an S3 server, in the versions that `go.sum` names. Built once, for a minute or two, and kept
 * in the cache; processes that want it meanwhile wait.
 * @throws when it cannot be built
 */
export function versitygw(): Promise<string> {
  // The lock is for processes: within one, all wait for the same build.
  return (built ??= build());
}

let built: Promise<string> | undefined;

async function build(): Promise<string> {
  const program = programPath();
  await madeOnce(dirname(program), {
    result: 'bin',
    make: async (sources, onStart) => {
      say('building versitygw, the S3 server of the tests (once)');
      for (const file of ['go.mod', 'go.sum']) cpSync(join(module, file), join(sources, file));
      const go = async (...args: string[]): Promise<void> => {
        const env = { ...process.env, ...buildEnv };
        // Whatever else the machine does comes first.
        const done = await runQuietly('nice', ['-n', '10', 'go', ...args], { onStart, cwd: sources, env });
        if (!done) throw new Error(missingForS3() ?? 'versitygw could not be built');
      };
      await go('mod', 'vendor');
      mend(join(sources, 'vendor', backport.file));
      await go('build', ...buildFlags, '-o', 'bin/versitygw', tool);
    },
  });
  return program;
}

function mend(file: string): void {
  const text = readFileSync(file, 'utf8');
  if (text.split(backport.from).length !== 2) throw new Error('the backport is for another release');
  writeFileSync(
    file,
    text.replace(backport.from, () => backport.to),
  );
}

function programPath(): string {
  const how = [tool, buildFlags, buildEnv, backport, process.platform, process.arch];
  return join(cachedFolder('versitygw', readFileSync(join(module, 'go.sum')), how), 'versitygw');
}
