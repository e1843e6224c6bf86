import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { nodeVersionOf } from './base-image.ts';
import { belongs, parseIgnore } from './build-context.ts';
import { parseDockerfile } from './dockerfile.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (file: string): string => readFileSync(`${root}/${file}`, 'utf8');

describe('parseDockerfile', () => {
  it('reads stages and their steps, over lines and comments', () => {
    const text = [
      '# syntax',
      'FROM node:1.2.3-x-slim AS base',
      'ENV A=1 B=two',
      'RUN one \\',
      '# between',
      ' && two',
      'FROM base AS app',
      'RUN --mount=type=cache,target=/var/cache/npm npm ci',
      'COPY --from=base --chmod=0755 a b/ c/',
      'USER 1:2',
      'ENTRYPOINT ["node", "x.ts"]',
      'EXPOSE 80 90',
    ];
    expect([...parseDockerfile(text.join('\n')).values()]).toEqual([
      {
        ...{ name: 'base', from: 'node:1.2.3-x-slim' },
        steps: [
          { kind: 'env', variables: { A: '1', B: 'two' } },
          { kind: 'run', command: 'one && two', caches: [] },
        ],
      },
      {
        ...{ name: 'app', from: 'base' },
        steps: [
          { kind: 'run', command: 'npm ci', caches: ['/var/cache/npm'] },
          { kind: 'copy', from: 'base', mode: '0755', sources: ['a', 'b/'], target: 'c/' },
          { kind: 'user', user: '1:2' },
          { kind: 'entrypoint', command: ['node', 'x.ts'] },
          { kind: 'expose', ports: [80, 90] },
        ],
      },
    ]);
  });

  it.each([
    'RUN x',
    'FROM a',
    'FROM a AS b\nADD x y',
    'FROM a AS b\nCOPY --chown=1 x y',
    'FROM a AS b\nENV A="x y"',
  ])('refuses what it does not understand: %j', (text) => {
    expect(() => parseDockerfile(text)).toThrow('not understood');
  });
});

describe('the build context', () => {
  it('is decided by the last rule that names a file or a folder above it', () => {
    const rules = parseIgnore('# all\n*\n!a/*/src\na/x/src/no\n**/*.test.ts\n');
    const paths = [
      'b',
      'a/x/other',
      'a/x/src/yes',
      'a/x/src/deep/yes',
      'a/x/src/no/yes',
      'a/x/src/z.test.ts',
    ];
    expect(paths.filter((path) => belongs(path, rules))).toEqual(['a/x/src/yes', 'a/x/src/deep/yes']);
    expect(belongs('anything', [])).toBe(true);
  });

  it('has no tests, no helpers of tests, nothing of git, and no data', () => {
    const rules = parseIgnore(read('.dockerignore'));
    const left = [
      '.git/config',
      '.millrace/x',
      'node_modules/a/b',
      'e2e/src/demo/main.ts',
      'charts/millrace/x',
    ];
    left.push(
      'services/cdn/src/testing/harness.ts',
      'packages/testing/src/index.ts',
      'services/api/src/a.test.ts',
    );
    for (const path of left)
      expect({ path, belongs: belongs(path, rules) }).toEqual({ path, belongs: false });
    const sent = [
      'services/api/src/main.ts',
      'packages/store/migrations/000001_record.sql',
      'package-lock.json',
    ];
    for (const path of sent) expect({ path, belongs: belongs(path, rules) }).toEqual({ path, belongs: true });
  });
});

describe('the Dockerfile', () => {
  const stages = parseDockerfile(read('Dockerfile'));

  it('begins with the Node.js of the project, by its whole version', () => {
    const bases = [...stages.values()].map(({ from }) => from).filter((from) => !stages.has(from));
    expect(bases.map(nodeVersionOf)).toEqual([process.versions.node]);
  });

  it('copies the manifest of every workspace to where it is', () => {
    const { workspaces } = JSON.parse(read('package.json')) as { workspaces: string[] };
    const manifests = workspaces.flatMap((pattern) => globSync(`${pattern}/package.json`, { cwd: root }));
    const copied = stages
      .get('manifests')
      ?.steps.flatMap((step) =>
        step.kind === 'copy' && step.sources.length === 1 ? [[step.sources[0], step.target]] : [],
      );
    expect(copied).toEqual(manifests.sort().map((path) => [path, path.replace('package.json', '')]));
  });

  it('has a target for each service, which runs as a numbered user that is not root', () => {
    for (const service of globSync('*', { cwd: `${root}/services` })) {
      const steps = stages.get(service)?.steps ?? [];
      expect(steps.find(({ kind }) => kind === 'user')).toEqual({ kind: 'user', user: '10001:10001' });
      const command = ['node', `services/${service}/src/main.ts`];
      expect(steps.find(({ kind }) => kind === 'entrypoint')).toEqual({ kind: 'entrypoint', command });
    }
  });
});
