import { describe, expect, it } from '@jest/globals';
import { captureLogger } from '@millrace/testing';
import { runServices, startServices } from './lifecycle.ts';
import { silentLogger } from './logger.ts';
import { type Service } from './service.ts';

/** Services that write down what happens to them. */
function recorder(): {
  make(name: string, faults?: { start?: Error; stop?: Error }): Service;
  events: string[];
} {
  const events: string[] = [];
  return {
    events,
    make: (name, faults = {}) => ({
      name,
      start: () => {
        events.push(`start ${name}`);
        return faults.start === undefined ? Promise.resolve() : Promise.reject(faults.start);
      },
      stop: () => {
        events.push(`stop ${name}`);
        return faults.stop === undefined ? Promise.resolve() : Promise.reject(faults.stop);
      },
      health: () => ({ healthy: true, ready: true, checks: {} }),
    }),
  };
}
const never = new AbortController().signal;

describe('startServices', () => {
  it('starts in order and stops in reverse, once', async () => {
    const { make, events } = recorder();
    const { stop } = await startServices([make('a'), make('b')], { signal: never, logger: silentLogger });
    await Promise.all([stop(), stop()]);
    expect(events).toEqual(['start a', 'start b', 'stop b', 'stop a']);
  });

  it('stops what was begun when one cannot start, that one too', async () => {
    const { make, events } = recorder();
    const failure = new Error('no');
    const services = [make('a'), make('b', { start: failure }), make('c')];
    await expect(startServices(services, { signal: never, logger: silentLogger })).rejects.toBe(failure);
    expect(events).toEqual(['start a', 'start b', 'stop b', 'stop a']);
  });

  it('stops the others when one does not stop cleanly', async () => {
    const { make, events } = recorder();
    const log = captureLogger();
    const { stop } = await startServices([make('a'), make('b', { stop: new Error('no') })], {
      signal: never,
      logger: log.logger,
    });
    await stop();
    expect(events).toEqual(['start a', 'start b', 'stop b', 'stop a']);
    expect(log.lines.at(-1)).toMatchObject({ level: 'error', fields: { name: 'b' } });
  });

  it('goes no further when it is told to stop in between', async () => {
    const { make, events } = recorder();
    const asked = new AbortController();
    const first = make('a');
    const stopping: Service = {
      ...first,
      start: async (signal) => {
        await first.start(signal);
        asked.abort(new Error('enough'));
      },
    };
    await expect(
      startServices([stopping, make('b')], { signal: asked.signal, logger: silentLogger }),
    ).rejects.toThrow('enough');
    expect(events).toEqual(['start a', 'stop a']);
  });
});

describe('runServices', () => {
  it('runs until a signal, and leaves no listener behind', async () => {
    const { make, events } = recorder();
    const before = process.listenerCount('SIGTERM');
    const up = Promise.withResolvers<undefined>();
    const last = make('b');
    const code = runServices(
      [
        make('a'),
        {
          ...last,
          start: async (signal) => {
            await last.start(signal);
            up.resolve(undefined);
          },
        },
      ],
      silentLogger,
    );
    await up.promise;
    process.emit('SIGTERM');
    expect(await code).toBe(0);
    expect(events).toEqual(['start a', 'start b', 'stop b', 'stop a']);
    expect(process.listenerCount('SIGTERM')).toBe(before);
  });

  it('is 1, with the reason in the log, when the start fails', async () => {
    const { make } = recorder();
    const log = captureLogger();
    expect(await runServices([make('a', { start: new Error('no database') })], log.logger)).toBe(1);
    expect(log.text()).toContain('no database');
  });
});
