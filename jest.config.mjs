// Three suites: unit (no I/O), integration (real PostgreSQL, ffmpeg, sockets), e2e (whole processes).
const common = {
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2024', parser: { syntax: 'typescript' } }, module: { type: 'es6' } },
    ],
  },
  // Workspaces resolve to their TypeScript sources, which must be transformed though they are linked there.
  transformIgnorePatterns: ['/node_modules/(?!@millrace/)'],
  // The load tests' scripts run under k6, whose modules are its own.
  moduleNameMapper: { '^k6/(http|metrics|timers)$': '<rootDir>/load-tests/node/k6/$1.ts' },
  moduleFileExtensions: ['ts', 'mjs', 'cjs', 'js', 'json'],
  modulePathIgnorePatterns: ['<rootDir>/.millrace', '<rootDir>/.cache'],
};
const postgres = {
  globalSetup: '<rootDir>/packages/testing/src/jest/global-setup.ts',
  globalTeardown: '<rootDir>/packages/testing/src/jest/global-teardown.ts',
};

export default {
  maxWorkers: 2,
  testTimeout: 60_000,
  projects: [
    {
      ...common,
      displayName: 'unit',
      roots: ['packages', 'services', 'embedded', 'bench', 'dev', 'scripts', 'load-tests'].map(
        (folder) => `<rootDir>/${folder}`,
      ),
      testMatch: ['**/*.test.ts'],
      testPathIgnorePatterns: ['/node_modules/', '\\.(int|e2e)\\.test\\.ts$'],
    },
    {
      ...common,
      ...postgres,
      displayName: 'integration',
      roots: ['packages', 'services', 'embedded', 'bench', 'dev', 'scripts'].map(
        (folder) => `<rootDir>/${folder}`,
      ),
      testMatch: ['**/*.int.test.ts'],
    },
    {
      ...common,
      displayName: 'e2e',
      roots: ['<rootDir>/e2e', '<rootDir>/load-tests'],
      testMatch: ['**/*.e2e.test.ts'],
    },
  ],
};
