import { spawn } from 'node:child_process';
import { describe, expect, it } from '@jest/globals';
import { untilSaid } from './server-process.ts';

const server = (script: string) =>
  spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'pipe'] });

describe('a server that says when it is ready', () => {
  it('is heard when much follows its word at once', async () => {
    const child = server(
      `require('fs').writeSync(1, 'ready to serve' + '\\n' + 'x'.repeat(40_000)); setInterval(() => 0, 1_000)`,
    );
    try {
      await untilSaid(child, { name: 'it', words: 'ready to serve', withinMs: 10_000 });
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('is heard when its word comes in two pieces, on either stream', async () => {
    const child = server(
      `process.stderr.write('ready to', () => setImmediate(() => process.stderr.write(' serve'))); setInterval(() => 0, 1_000)`,
    );
    try {
      await untilSaid(child, { name: 'it', words: 'ready to serve', withinMs: 10_000 });
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('that ends before is reported with its last words', async () => {
    const child = server(`process.stdout.write('no room left', () => process.exit(3))`);
    await expect(untilSaid(child, { name: 'it', words: 'ready', withinMs: 10_000 })).rejects.toThrow(
      /^it ended with 3/,
    );
  });

  it('that says nothing in time is reported', async () => {
    const child = server('setInterval(() => 0, 1_000)');
    try {
      await expect(untilSaid(child, { name: 'it', words: 'ready', withinMs: 50 })).rejects.toThrow(
        'it was not ready within 50 ms',
      );
    } finally {
      child.kill('SIGKILL');
    }
  });
});
