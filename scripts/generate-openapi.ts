/**
 * Writes `docs/openapi.json`: the document that the API serves at `/openapi.json`, with example addresses.
 * `--check` compares instead, and exits with 1 when it differs.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { openApiDocument } from '@millrace/contract/openapi';

const file = 'docs/openapi.json';
const document = openApiDocument({ apiUrl: 'https://api.example.com', docsUrl: 'https://api.example.com' });
const text = `${JSON.stringify(document, null, 1)}\n`;
if (!process.argv.includes('--check')) writeFileSync(file, text);
else if (readFileSync(file, 'utf8') !== text) {
  console.error(`${file} is not what the route table gives: run node scripts/generate-openapi.ts`);
  process.exitCode = 1;
}
