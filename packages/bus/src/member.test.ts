import { describe, expect, it } from '@jest/globals';
import { createMetrics, superviseLoops } from '@millrace/platform';
import { captureLogger, createManualClock } from '@millrace/testing';
import { BusUnavailableError, type Subscription } from './bus.ts';
import { createMember } from './member.ts';

const subscriptionWith = (close: () => Promise<void>): Subscription => ({ assigned: () => [0], close });

function setUp(join: () => Promise<Subscription>) {
  const member = createMember('consume-things', join);
  const clock = createManualClock();
  const { logger } = captureLogger();
  const metrics = createMetrics({ service: 'test' });
  return { member, clock, supervisor: superviseLoops([member.loop], { clock, logger, metrics }) };
}
const { signal } = new AbortController();

describe('a member', () => {
  it('tries again to join, says so meanwhile, and leaves when it is stopped', async () => {
    let tries = 0;
    let closed = 0;
    const isThere = Promise.withResolvers<undefined>();
    const { member, clock, supervisor } = setUp(() => {
      if (++tries < 3) return Promise.reject(new BusUnavailableError('away'));
      isThere.resolve(undefined);
      return Promise.resolve(
        subscriptionWith(() => {
          closed++;
          return Promise.resolve();
        }),
      );
    });
    supervisor.start();
    await member.attempted(signal);
    expect(member.joined).toBe(false);
    await clock.whenSleeping();
    expect(supervisor.checks()).toEqual({ 'consume-things': 'away' });
    await clock.advance(500);
    await clock.advance(1_000);
    await isThere.promise;
    await clock.advance(0);
    expect(member.joined).toBe(true);
    expect(supervisor.checks()).toEqual({ 'consume-things': 'ok' });
    expect(closed).toBe(0);
    await supervisor.stop();
    expect([tries, closed, member.joined]).toEqual([3, 1, false]);
  });

  it('is stopped while it joins, and closes what it gets after that', async () => {
    const joining = Promise.withResolvers<Subscription>();
    const closed = Promise.withResolvers<undefined>();
    const { member, supervisor } = setUp(() => joining.promise);
    supervisor.start();
    await supervisor.stop();
    expect(member.joined).toBe(false);
    joining.resolve(
      subscriptionWith(() => {
        closed.resolve(undefined);
        return Promise.resolve();
      }),
    );
    await closed.promise;
  });

  it('keeps a start that is called off waiting no longer', async () => {
    const { member } = setUp(() => new Promise(() => undefined));
    const calledOff = new AbortController();
    const waiting = member.attempted(calledOff.signal);
    calledOff.abort(new Error('called off'));
    await expect(waiting).rejects.toThrow('called off');
  });
});
