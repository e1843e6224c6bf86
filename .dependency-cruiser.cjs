/**
 * The import rules between folders (ARCHITECTURE.md, "What may import what").
 * A folder may import only what its line names, plus npm libraries.
 */
const may = {
  'packages/contract': [],
  'packages/domain': ['packages/contract'],
  'packages/platform': ['packages/contract'],
  'packages/store': ['packages/contract', 'packages/domain', 'packages/platform'],
  'packages/bus': ['packages/contract', 'packages/platform'],
  'packages/objects': ['packages/contract', 'packages/platform'],
  'packages/client': ['packages/contract'],
  'packages/player': [],
};
const tests = '[.]test[.]ts$|/testing/|^e2e/|^bench/';
const escape = (folder) => folder.replaceAll('.', '[.]');

module.exports = {
  forbidden: [
    ...Object.entries(may).map(([folder, allowed]) => ({
      name: `${folder.replace('/', '-')}-imports`,
      severity: 'error',
      from: { path: `^${escape(folder)}/`, pathNot: tests },
      to: {
        path: '^(packages|services|embedded|e2e|bench|dev)/',
        pathNot: [folder, ...allowed].map((a) => `^${escape(a)}/`),
      },
    })),
    {
      name: 'service-imports-packages-only',
      comment: 'A service never imports another service; embedded/ alone composes several.',
      severity: 'error',
      from: { path: '^services/([^/]+)/' },
      to: { path: '^(services|embedded)/', pathNot: '^services/$1/' },
    },
    {
      name: 'testing-in-tests-only',
      severity: 'error',
      from: { path: '^(packages|services|embedded)/', pathNot: tests },
      to: { path: '^(packages/testing|e2e|bench)/' },
    },
    {
      name: 'distributed-without-embedded-adapters',
      comment:
        'A service on its own runs on Kafka and S3: nothing it loads may know of the log or the folder.',
      severity: 'error',
      from: { path: '^services/[^/]+/src/main[.]ts$' },
      to: { path: '^packages/(bus/src/(postgres|log|memory)|objects/src/folder)/', reachable: true },
    },
    {
      name: 'adapters-apart',
      comment: 'Adapters of one port share only what lies beside them.',
      severity: 'error',
      from: { path: '^packages/bus/src/kafka/', pathNot: tests },
      to: { path: '^packages/bus/src/(postgres|log|memory)/' },
    },
    {
      name: 'load-tests-stand-alone',
      comment: 'k6 runs them: what they load lies beside them; scenarios do not even know k6.',
      severity: 'error',
      from: { path: '^load-tests/(src|k6|[^/]+[.]ts$)' },
      to: { path: '^(packages|services|embedded|e2e|bench|dev|scripts|load-tests/node)/' },
    },
    {
      name: 'scenarios-without-k6',
      severity: 'error',
      from: { path: '^load-tests/src/' },
      to: { path: '^(load-tests/)?k6/' },
    },
    {
      name: 'domain-does-no-io',
      comment: 'domain decides, others act: no files, sockets or processes there.',
      severity: 'error',
      from: { path: '^packages/(domain|contract)/', pathNot: tests },
      to: { dependencyTypes: ['core'], pathNot: '^(node:)?(crypto|buffer)$' },
    },
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '(^|/)node_modules/(?!@millrace)|^packages/testing/media/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'types'] },
  },
};
