import { describe, expect, it } from '@jest/globals';
import { createLogger, type Logger } from './logger.ts';

function capture(level: 'debug' | 'info' = 'info'): {
  logger: Logger;
  lines: () => Record<string, unknown>[];
  text: () => string;
} {
  const written: string[] = [];
  const logger = createLogger({
    service: 'api',
    level,
    destination: { write: (line) => written.push(line) },
  });
  return {
    logger,
    lines: () => written.map((line) => JSON.parse(line) as Record<string, unknown>),
    text: () => written.join(''),
  };
}

describe('createLogger', () => {
  it('writes one JSON line with time, level, service, fields and message', () => {
    const { logger, lines } = capture();
    logger.child({ requestId: 'req_1' }).warn({ ms: 5 }, 'slow');
    expect(lines()).toEqual([
      {
        level: 'warn',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/) as unknown,
        service: 'api',
        requestId: 'req_1',
        ms: 5,
        msg: 'slow',
      },
    ]);
  });

  it('keeps to its level', () => {
    const quiet = capture();
    quiet.logger.debug({}, 'no');
    expect(quiet.lines()).toEqual([]);
    const chatty = capture('debug');
    chatty.logger.debug({}, 'yes');
    expect(chatty.lines()).toHaveLength(1);
  });

  it('writes errors with stack, code and cause', () => {
    const { logger, lines } = capture();
    const error = Object.assign(new Error('outer', { cause: new Error('inner') }), { code: 'E_X' });
    logger.error({ err: error }, 'failed');
    expect(lines()[0]).toMatchObject({ err: { message: 'outer: inner', code: 'E_X' } });
    expect((lines()[0]?.['err'] as { stack: string }).stack).toContain('inner');
  });

  it('leaves the connection out that an error of PostgreSQL brings along', () => {
    const { logger, lines, text } = capture();
    const error = Object.assign(new Error('lost'), { code: '57P01', client: { secretKey: 4_711 } });
    logger.warn({ err: error }, 'connection lost');
    expect(lines()[0]).toMatchObject({ err: { message: 'lost', code: '57P01' } });
    expect(text()).not.toContain('4711');
  });

  it.each([
    { token: 'hush' },
    { call: { token: 'hush' } },
    { headers: { authorization: 'hush', cookie: 'hush' } },
    { a: { b: { secret: 'hush', password: 'hush', phone: 'hush' } } },
    { endpoint: { signingSecret: 'hush' } },
  ])('masks the fields of %j', (fields) => {
    const { logger, text } = capture();
    logger.info(fields, 'x');
    logger.child(fields).info({}, 'x');
    expect(text()).not.toContain('hush');
    expect(text()).toContain('***');
  });

  it.each([
    ['https://cdn.example/v/vid_1/master.m3u8?token=hush.hush&x=1'],
    ['https://s3.example/b/k?X-Amz-Security-Token=hush%2B&X-Amz-Signature=hush'],
    ['Bearer hush'],
    [`svk_${'a'.repeat(22)}_hush`],
    ['whsec_hushhushhushhush'],
    ['ses_hushhushhushhush'],
    [`eyJ${'hush'.repeat(20)}.${'hush'.repeat(10)}`],
    ['postgres://user:hush@db.example/x'],
  ])('masks %s wherever it stands [UPT-003]', (secret) => {
    const { logger, text } = capture();
    logger.error(
      { err: new Error(`while asking ${secret}`), url: secret, list: [secret] },
      `asked ${secret}`,
    );
    expect(text()).not.toContain('hush');
    expect(() => JSON.parse(text()) as unknown).not.toThrow();
  });
});
