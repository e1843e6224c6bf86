/**
 * `node scripts/keep-release.ts REF`: keeps the sources of a release, from git, for the test that runs it on the schema of
 * the next one (docs/adr/0019-the-chart-and-the-images.md). To be called when a release is made.
 */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { brotliCompressSync, constants } from 'node:zlib';

const file = 'e2e/previous-release/sources.tar.br';
const paths = ['package.json', 'packages', 'services', 'embedded'];
const left = ['**/*.test.ts', 'packages/testing/**', '*/*/src/testing/**', '**/conformance/**'];

const [ref] = process.argv.slice(2);
if (ref === undefined) {
  process.stderr.write('usage: node scripts/keep-release.ts REF\n');
  process.exitCode = 2;
} else {
  const excluded = left.map((glob) => `:(exclude,glob)${glob}`);
  const archive = execFileSync('git', ['archive', ref, '--', ...paths, ...excluded], { maxBuffer: 2 ** 28 });
  const params = { [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS };
  writeFileSync(file, brotliCompressSync(archive, { params }));
}
