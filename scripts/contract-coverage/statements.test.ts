import { describe, expect, it } from '@jest/globals';
import { readStatements } from './statements.ts';

const page = `# The contract

## Uploads

Prose names \`UPL-001\` and SHA-256.

- **UPL-001** A sentence on
  two lines.
- **UPL-002** Another one.

Prose between.

#### Deep

| rule        | status | code      |
| ----------- | ------ | --------- |
| **CDN-321** | 404    | not_found |
| CDN-321     | 404    | no rule   |

### Shallower

- **UPL-101** The last.
`;

describe('readStatements', () => {
  it('takes list items, joined, and rows of tables, each with its headings', () => {
    expect(readStatements(page)).toEqual([
      { id: 'UPL-001', text: 'A sentence on two lines.', section: 'Uploads' },
      { id: 'UPL-002', text: 'Another one.', section: 'Uploads' },
      { id: 'CDN-321', text: '404 | not_found', section: 'Uploads › Deep' },
      { id: 'UPL-101', text: 'The last.', section: 'Uploads › Shallower' },
    ]);
  });

  it('refuses an id that two statements have', () => {
    expect(() => readStatements(`${page}\n- **UPL-002** Again.\n`)).toThrow('UPL-002 is given to two');
  });

  it('refuses a reference to a statement that does not exist', () => {
    expect(() => readStatements(`${page}\nSee UPL-003.\n`)).toThrow('UPL-003, which is no statement');
  });
});
