import { describe, expect, it } from '@jest/globals';
import { mountsUnder } from './mounts.ts';

const table = String.raw`proc /proc proc rw 0 0
millrace-test /tmp/run/tmp/scratch tmpfs rw,size=65536k 0 0
millrace-test /tmp/run/tmp/scratch/a\040b tmpfs rw 0 0
millrace-test /tmp/run-of-another/scratch tmpfs rw 0 0
millrace-test /tmp/run tmpfs rw 0 0
`;

describe('mountsUnder', () => {
  it('finds what is mounted under a folder, the inner ones first', () => {
    expect(mountsUnder('/tmp/run', table)).toEqual(['/tmp/run/tmp/scratch/a b', '/tmp/run/tmp/scratch']);
  });
});
