import { execFile, spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Where projects whose objects the chart makes keep the definitions of those: Go modules. */
const sources = [
  {
    module: 'github.com/kedacore/keda/v2@v2.21.0',
    sum: 'h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps=',
    folder: 'config/crd/bases',
    files: ['keda.sh_scaledobjects.yaml', 'keda.sh_triggerauthentications.yaml'],
  },
  {
    module: 'github.com/prometheus-operator/prometheus-operator@v0.83.0',
    sum: 'h1:qAKbm+45fqNGcn9sGTa1Ae2TM3KZuYA/uyoD2QKi9+o=',
    folder: 'example/prometheus-operator-crd',
    files: ['monitoring.coreos.com_servicemonitors.yaml', 'monitoring.coreos.com_prometheusrules.yaml'],
  },
];

/** What this machine lacks to fetch them, in a sentence for people; null when nothing. */
export const missingForDefinitions = (): string | null =>
  spawnSync('go', ['version'], { stdio: 'ignore' }).status === 0
    ? null
    : 'Go (the command `go`) fetches what KEDA and Prometheus’ operator define';

/**
 * Paths of the definitions of KEDA's and of Prometheus' operator's objects, as those projects publish them. Go fetches
 * their modules once.
 * @throws Error when they cannot be had, or are not what they were
 */
export async function foreignDefinitions(): Promise<string[]> {
  const paths: string[] = [];
  for (const { module, sum, folder, files } of sources) {
    const { stdout } = await promisify(execFile)('go', ['mod', 'download', '-json', module], {
      cwd: tmpdir(),
    });
    const { Dir: dir, Sum: found } = JSON.parse(stdout) as { Dir: string; Sum: string };
    if (found !== sum) throw new Error(`${module} is not what it was`);
    paths.push(...files.map((file) => join(dir, folder, file)));
  }
  return paths;
}
