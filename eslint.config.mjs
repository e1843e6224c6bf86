import tseslint from 'typescript-eslint';

export default tseslint.config(
  {
    ignores: [
      'node_modules/**',
      '.millrace/**',
      '.cache/**',
      '**/*.mjs',
      '**/*.cjs',
      'packages/testing/media/**',
    ],
  },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      // Row and JSON shapes index by string on purpose; dot access there is refused by tsc itself.
      '@typescript-eslint/dot-notation': 'off',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      'no-console': 'error',
      eqeqeq: 'error',
    },
  },
  {
    // Libraries that nobody maintains stay behind one file each.
    files: ['packages/**', 'services/**', 'embedded/**', 'dev/**'],
    ignores: [
      'packages/bus/src/kafka/kafkajs.ts',
      'services/encoder/src/process/fluent-ffmpeg-process.ts',
      '**/*.test.ts',
    ],
    rules: { 'no-restricted-imports': ['error', 'kafkajs', 'fluent-ffmpeg'] },
  },
  {
    // jest's expect(spy.method) idiom and async-less stubs that satisfy an async port.
    files: ['**/*.test.ts', 'packages/testing/**', 'e2e/**'],
    rules: { '@typescript-eslint/unbound-method': 'off', '@typescript-eslint/require-await': 'off' },
  },
  { files: ['scripts/**', 'bench/**', 'embedded/src/cli/**'], rules: { 'no-console': 'off' } },
);
