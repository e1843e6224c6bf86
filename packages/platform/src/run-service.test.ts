import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { z } from 'zod';
import { loadConfig } from './config.ts';
import { processSettings } from './process-settings.ts';
import { type ProcessParts, runService } from './run-service.ts';
import { type Service } from './service.ts';

const schema = z.object({ ...processSettings, GREETING: z.string(), COUNT: z.coerce.number() });
const right = { GREETING: 'hello', COUNT: '1', LOG_LEVEL: 'error' };

let told: string;
beforeEach(() => {
  told = '';
  jest.spyOn(process.stderr, 'write').mockImplementation((text) => {
    told += String(text);
    return true;
  });
});
afterEach(() => {
  jest.restoreAllMocks();
});

/** Runs a service with two connections and writes down what happens; `up` resolves when it has started. */
function run(env: Record<string, string>, faults: { create?: Error; start?: Error; close?: Error } = {}) {
  const events: string[] = [];
  const up = Promise.withResolvers<undefined>();
  const act = (event: string, fault?: Error): Promise<void> => {
    events.push(event);
    return fault === undefined ? Promise.resolve() : Promise.reject(fault);
  };
  const shown: string[] = [];
  const create = (config: { GREETING: string }, { own, metrics }: ProcessParts): Service => {
    events.push(`create ${config.GREETING}`);
    const showStopping = async (): Promise<void> => {
      shown.push(/^millrace_stopping\{.*\} (\d)$/m.exec(await metrics.render())?.[1] ?? 'nothing');
    };
    own({ close: () => act('close database', faults.close) });
    own({ close: () => act('close bus') });
    if (faults.create !== undefined) throw faults.create;
    return {
      name: 'greeter',
      start: async () => {
        await act('start', faults.start);
        await showStopping();
        up.resolve(undefined);
      },
      stop: async () => {
        await showStopping();
        await act('stop');
      },
      health: () => ({ healthy: true, ready: true, checks: {} }),
    };
  };
  const code = runService({
    name: 'greeter',
    read: () => loadConfig(schema, env),
    create,
    exit: () => undefined,
  });
  return { code, events, shown, up: up.promise };
}

describe('runService', () => {
  it('stops the service first, then its connections, the last one first', async () => {
    const { code, events, up } = run(right);
    await up;
    process.emit('SIGTERM');
    expect(await code).toBe(0);
    expect(events).toEqual(['create hello', 'start', 'stop', 'close bus', 'close database']);
  });

  it('shows whether it was told to stop, while it drains', async () => {
    const { code, shown, up } = run(right);
    await up;
    process.emit('SIGTERM');
    expect(await code).toBe(0);
    expect(shown).toEqual(['0', '1']);
  });

  it('closes every connection, also when one does not close cleanly', async () => {
    const { code, events, up } = run(right, { close: new Error('no') });
    await up;
    process.emit('SIGINT');
    expect(await code).toBe(0);
    expect(events.slice(-2)).toEqual(['close bus', 'close database']);
  });

  it('lists every problem of its settings, and none of their values, and ends with 78', async () => {
    const { code, events } = run({ COUNT: 'secret', OPS_PORT: '70000' });
    expect(await code).toBe(78);
    expect(events).toEqual([]);
    expect(told).toContain('millrace greeter: the configuration is not valid');
    for (const name of ['GREETING', 'COUNT', 'OPS_PORT']) expect(told).toContain(`${name}: `);
    expect(told).not.toContain('secret');
  });

  it('ends with 1 when the service cannot be made or started, and closes what was opened', async () => {
    const unmade = run(right, { create: new Error('no') });
    expect(await unmade.code).toBe(1);
    expect(unmade.events).toEqual(['create hello', 'close bus', 'close database']);
    const unstarted = run(right, { start: new Error('no') });
    expect(await unstarted.code).toBe(1);
    expect(unstarted.events.slice(-3)).toEqual(['stop', 'close bus', 'close database']);
  });
});
