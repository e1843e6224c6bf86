import { cpSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runQuietly } from '../../scripts/setup/exec.mjs';
import { cachedFolder, madeOnce, runs } from '../made-once.ts';

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
  await madeOnce(folder, {
    result: 'libs',
    make: async (build, onStart) => {
      cpSync(pom, join(build, 'pom.xml'));
      const goals = ['dependency:copy-dependencies', '-DincludeScope=runtime', '-DoutputDirectory=libs'];
      // Whatever else the machine does comes first.
      const mvn = ['-n', '10', 'mvn', '-B', '-q', ...goals];
      if (!(await runQuietly('nice', mvn, { onStart, cwd: build })))
        throw new Error(missingForKafka() ?? 'the jars of Apache Kafka could not be fetched');
    },
  });
  return folder;
}

const jarFolder = (): string => cachedFolder('kafka', readFileSync(pom));
