/** What is mutated, and by which tests its mutants must fall. Paths are globs from the project's root. */
export interface Area {
  name: string;
  /** As the page says it. */
  title: string;
  mutate: readonly string[];
  /** Beside the code and fast, since each mutant runs those that reach it; `!` leaves one out. */
  tests: readonly string[];
  /** The folder that both are in. */
  root: string;
  /** Whether the tests want the PostgreSQL of integration tests. */
  database: boolean;
}

export const areas: readonly Area[] = [
  {
    name: 'domain',
    title: 'The rules (`packages/domain`)',
    root: 'packages/domain',
    mutate: ['packages/domain/src/**/*.ts'],
    tests: ['packages/domain/src/**/*.test.ts', '!**/hostile.test.ts'],
    database: false,
  },
  {
    name: 'cdn',
    title: 'The CDN’s checks',
    root: 'services/cdn',
    mutate: [
      'services/cdn/src/{checks,tokens}.ts',
      'services/cdn/src/http/{head,target,refusals}.ts',
      'services/cdn/src/delivery/{delivery,byte-gate}.ts',
      'services/cdn/src/embed/policy.ts',
    ],
    tests: [
      'services/cdn/src/{checks,tokens}.test.ts',
      'services/cdn/src/http/{head,target,refusals}.test.ts',
      'services/cdn/src/delivery/{delivery,byte-gate}.test.ts',
      'services/cdn/src/embed/policy.test.ts',
    ],
    database: false,
  },
  {
    name: 'api-auth',
    title: 'The API’s auth',
    root: 'services/api',
    mutate: ['services/api/src/auth/*.ts'],
    // Not those that start a whole API for each mutant.
    tests: ['services/api/src/auth/*.test.ts', '!**/{guard,gateway-token}.int.test.ts'],
    database: true,
  },
];
