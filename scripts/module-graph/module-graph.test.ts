import { beforeAll, describe, expect, it } from '@jest/globals';
import { cruise, type ICruiseResult } from 'dependency-cruiser';

/** Two of the services move the bytes; on a cluster there are many of them, and they must be what they seem. */
const mains = { cdn: 'services/cdn/src/main.ts', encoder: 'services/encoder/src/main.ts' };

describe('of the modules that a process of its own loads', () => {
  let edges: ReadonlyMap<string, readonly string[]>;
  beforeAll(async () => {
    const { output } = await cruise(Object.values(mains), {
      doNotFollow: { path: 'node_modules/(?!@millrace)' },
      enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node'] },
    });
    const { modules } = output as ICruiseResult;
    edges = new Map(
      modules.map(({ source, dependencies }) => [source, dependencies.map(({ resolved }) => resolved)]),
    );
  }, 120_000);

  /** Everything that is reached from a file, sorted. */
  const graph = (from: string): string[] => {
    const seen = new Set([from]);
    for (const module of seen) for (const next of edges.get(module) ?? []) seen.add(next);
    return [...seen].sort();
  };
  const inside = (modules: readonly string[], folder: string): string[] =>
    modules.filter((module) => module.startsWith(folder));

  it.each(Object.entries(mains))('the %s has Kafka and S3, and no adapter of one machine', (_name, main) => {
    const modules = graph(main);
    expect(modules).toEqual(
      expect.arrayContaining(['packages/bus/src/kafka/kafka-bus.ts', 'packages/objects/src/s3/objects.ts']),
    );
    const local = ['bus/src/postgres', 'bus/src/log', 'bus/src/memory', 'objects/src/folder'];
    expect(local.flatMap((folder) => inside(modules, `packages/${folder}/`))).toEqual([]);
    expect(inside(modules, 'embedded/')).toEqual([]);
  });

  it('the cdn has no way to a database', () => {
    const modules = graph(mains.cdn);
    expect(inside(modules, 'packages/store/')).toEqual([]);
    expect(modules.filter((module) => /(^|\/)node_modules\/pg\//.test(module))).toEqual([]);
  });
});
