import { expect, it } from '@jest/globals';
import { decidePurge } from './purge.ts';

it.each([
  ['purges what was tombstoned', { mayPurge: true, purgedBefore: false, isEmpty: false }, 'purge'],
  [
    'purges what has nothing yet: a worker may write late',
    { mayPurge: true, purgedBefore: false, isEmpty: true },
    'purge',
  ],
  ['purges again what came since', { mayPurge: true, purgedBefore: true, isEmpty: false }, 'purge'],
  ['forgets what stayed empty', { mayPurge: true, purgedBefore: true, isEmpty: true }, 'forget'],
  ['leaves what is under a legal hold', { mayPurge: false, purgedBefore: true, isEmpty: true }, null],
] as const)('%s', (_, { purgedBefore, ...seen }, expected) => {
  const doomed = { prefix: 'p/', videoId: 'vid_1', purgedBefore, upload: null, deleteAfter: '' };
  expect(decidePurge({ ...seen, doomed })).toBe(expected);
});
