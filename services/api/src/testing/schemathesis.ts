import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

const hooks = fileURLToPath(new URL('../../../../dev/schemathesis', import.meta.url));

const reportOf = z.object({
  operations: z.object({ total: z.int(), tested: z.int() }),
  failures: z.array(z.unknown()),
  errors: z.array(z.unknown()),
});

export interface OutsideRun {
  url: string;
  /** `Name: value` of the credential. */
  headers: readonly string[];
  /** Path parameters that lead somewhere, for every operation. */
  parameters: Readonly<Record<string, string>>;
  /** Others for some, by operation id: what a delete takes away is its own. */
  operations?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Operations that are left alone: what would take the credential away. */
  without?: readonly string[];
  /** Check that wrong credentials are refused; true unless told. */
  ignoredAuth?: boolean;
}

export interface OutsideReport {
  /** Empty when all is well. */
  failures: unknown[];
  /** Operations of the document that should have been tried and were not. */
  untested: number;
  /** `METHOD path` of the operations that answered some request with a 2xx. */
  accepted: Set<string>;
  /** What it printed, with the seed. */
  output: string;
}

/**
 * Has Schemathesis try every operation of the served OpenAPI document: status, content type, headers and bodies must
 * be what it declares, credentials must count, and nothing may be our fault.
 */
export async function runSchemathesis({
  url,
  headers,
  parameters,
  operations = {},
  ignoredAuth = true,
  without = [],
}: OutsideRun): Promise<OutsideReport> {
  const command = process.env['MILLRACE_SCHEMATHESIS'];
  if (command === undefined) throw new Error('MILLRACE_SCHEMATHESIS is not set: run this test by npm test');
  const folder = await mkdtemp(path.join(tmpdir(), 'millrace-schemathesis-'));
  try {
    await writeFile(path.join(folder, 'schemathesis.toml'), settings(parameters, operations));
    const report = path.join(folder, 'report.json');
    const acceptedFile = path.join(folder, 'accepted');
    await writeFile(acceptedFile, '');
    const args = [
      ...['run', `${url}/openapi.json`, '--max-examples', process.env['MILLRACE_EXAMPLES'] ?? '20'],
      ...['--phases', 'examples,coverage,fuzzing', '--continue-on-failure', '--warnings', 'off'],
      ...[
        '--checks',
        [...checks, ...(ignoredAuth ? ['ignored_auth'] : [])].join(','),
        '--report',
        'json',
        '--report-json-path',
        report,
      ],
      ...without.flatMap((id) => ['--exclude-operation-id', id]),
      ...headers.flatMap((header) => ['--header', header]),
    ];
    const output = await run(command, args, { folder, acceptedFile });
    const { failures, errors, operations: ran } = reportOf.parse(JSON.parse(await readFile(report, 'utf8')));
    const accepted = (await readFile(acceptedFile, 'utf8')).split('\n').filter((line) => line !== '');
    return {
      failures: [...failures, ...errors],
      untested: ran.total - ran.tested - without.length,
      accepted: new Set(accepted),
      output,
    };
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** A missing method is 404 here, so `unsupported_method` is left out; see hooks.py for faults of ours. */
const checks = [
  ...['status_code_conformance', 'content_type_conformance', 'response_headers_conformance'],
  ...['response_schema_conformance', 'no_fault_of_ours'],
];

function settings(
  parameters: OutsideRun['parameters'],
  operations: NonNullable<OutsideRun['operations']>,
): string {
  const table = (values: Readonly<Record<string, string>>): string =>
    Object.entries(values)
      .map(([name, value]) => `"path.${name}" = ${JSON.stringify(value)}`)
      .join(', ');
  const own = Object.entries(operations).map(
    ([id, values]) =>
      `[[operations]]\ninclude-operation-id = ${JSON.stringify(id)}\nparameters = { ${table({ ...parameters, ...values })} }\n`,
  );
  return `parameters = { ${table(parameters)} }\n${own.join('')}`;
}

/** It ends with 1 when something failed: the report says what. */
const run = (
  command: string,
  args: readonly string[],
  { folder, acceptedFile }: { folder: string; acceptedFile: string },
): Promise<string> =>
  new Promise((resolve) => {
    const own = { SCHEMATHESIS_HOOKS: 'hooks', PYTHONPATH: hooks, MILLRACE_ACCEPTED: acceptedFile };
    const env = { ...process.env, ...own, PYTHONDONTWRITEBYTECODE: '1' };
    execFile(command, args, { cwd: folder, env, maxBuffer: 64 * 1024 ** 2 }, (_error, stdout, stderr) => {
      resolve(stdout + stderr);
    });
  });
