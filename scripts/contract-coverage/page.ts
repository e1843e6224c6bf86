import { type Coverage } from './coverage.ts';
import { type Statement } from './statements.ts';

/** `docs/contract-coverage.md`: each statement with the tests that prove it. */
export function coveragePage({ statements, claims, uncovered }: Coverage): string {
  const open = new Set(uncovered);
  const sections = Map.groupBy(statements, ({ section }) => section);
  const lines = [
    '# What proves the contract',
    '',
    'Made by the test run from the tags in the titles of tests. Rules are those of [contract.md](contract.md).',
    '',
    `${statements.length - uncovered.length} of ${statements.length} statements have a test.`,
    '',
  ];
  if (open.size > 0) {
    lines.push('## Without a test', '');
    for (const [section, members] of sections) {
      const ids = members.filter((statement) => open.has(statement)).map(({ id }) => id);
      if (ids.length > 0) lines.push(`- ${section} (${ids.length} of ${members.length}): ${ids.join(', ')}`);
    }
    lines.push('');
  }
  for (const [section, members] of sections) {
    lines.push(`## ${section}`, '');
    for (const statement of members) lines.push(...entry(statement, claims));
    lines.push('');
  }
  return lines.join('\n');
}

function entry({ id, text }: Statement, claims: Coverage['claims']): string[] {
  const tests = (claims.get(id) ?? []).map(({ file, title }) => `  - \`${file}\`: ${title}`);
  return [`- **${id}** ${text}`, ...(tests.length === 0 ? ['  - no test yet'] : [...new Set(tests)])];
}
