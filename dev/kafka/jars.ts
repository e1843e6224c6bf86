import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runQuietly } from '../../scripts/setup/exec.mjs';
import { withLock } from '../../scripts/setup/lock.mjs';

const pom = fileURLToPath(new URL('pom.xml', import.meta.url));

/** What this machine lacks to run Apache Kafka, in a sentence for people; null when nothing. */
export function missingForKafka(): string | null {
  if (!runs('java', '-version')) return 'Java (17 or later, the command `java`) runs Apache Kafka';
  if (existsSync(jarFolder()) || runs('mvn', '-version')) return null;
  return 'Maven (the command `mvn`) fetches Apache Kafka';
}

/**
 * The folder with the jars of the broker that `pom.xml` names. Fetched once, in some seconds, and kept in the cache;
 * processes that want them meanwhile wait.
 * @throws when they cannot be had
 */
export async function kafkaJars(): Promise<string> {
  const folder = jarFolder();
  if (existsSync(folder)) return folder;
  mkdirSync(dirname(folder), { recursive: true });
  await withLock(`${folder}.lock`, async (onStart) => {
    if (existsSync(folder)) return;
    const build = `${folder}.build`;
    rmSync(build, { recursive: true, force: true });
    mkdirSync(build);
    cpSync(pom, join(build, 'pom.xml'));
    const goals = ['dependency:copy-dependencies', '-DincludeScope=runtime', '-DoutputDirectory=libs'];
    // Whatever else the machine does comes first.
    const fetched = await runQuietly('nice', ['-n', '10', 'mvn', '-B', '-q', ...goals], {
      onStart,
      cwd: build,
    });
    if (!fetched) throw new Error(missingForKafka() ?? 'the jars of Apache Kafka could not be fetched');
    renameSync(join(build, 'libs'), folder);
    rmSync(build, { recursive: true });
  });
  return folder;
}

function jarFolder(): string {
  const cache = process.env['MILLRACE_CACHE'] || join(homedir(), '.cache', 'millrace');
  const hash = createHash('sha256').update(readFileSync(pom)).digest('hex');
  return join(cache, `kafka-${hash.slice(0, 16)}`);
}

const runs = (command: string, flag: string): boolean =>
  spawnSync(command, [flag], { stdio: 'ignore' }).status === 0;
