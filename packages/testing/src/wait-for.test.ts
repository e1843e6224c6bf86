import { describe, expect, it } from '@jest/globals';
import { captureLogger } from './capture-logger.ts';
import { waitFor } from './wait-for.ts';

describe('waitFor', () => {
  it('returns the first truthy value, and takes errors for "not yet"', async () => {
    let turn = 0;
    const value = await waitFor(() => {
      turn += 1;
      if (turn === 1) throw new Error('not yet');
      return turn < 3 ? null : { turn };
    });
    expect(value).toEqual({ turn: 3 });
  });

  it('fails with what it waited for and what it saw last', async () => {
    await expect(waitFor(() => false, { timeoutMs: 20, what: 'the queue to drain' })).rejects.toThrow(
      'waited 20 ms for the queue to drain; last seen: false',
    );
    const cause = new Error('refused');
    await expect(waitFor(() => Promise.reject(cause), { timeoutMs: 20 })).rejects.toMatchObject({ cause });
  });
});

describe('captureLogger', () => {
  it('keeps lines with the fields of their child loggers, and errors as text', () => {
    const log = captureLogger();
    log.logger.child({ service: 'api' }).warn({ videoId: 'vid_1' }, 'slow');
    log.logger.error({ error: new Error('outer', { cause: new Error('inner secret') }) }, 'failed');
    expect(log.lines[0]).toEqual({
      level: 'warn',
      message: 'slow',
      fields: { service: 'api', videoId: 'vid_1' },
    });
    expect(log.text()).toContain('outer');
    expect(log.text()).toContain('inner secret');
  });
});
