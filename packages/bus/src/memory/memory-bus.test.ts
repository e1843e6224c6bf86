import { randomUUID } from 'node:crypto';
import { silentLogger, systemClock } from '@millrace/platform';
import { BusUnavailableError } from '../bus.ts';
import { busConformance, type ConformanceWorld } from '../conformance.ts';
import { createLogBus } from '../log/log-bus.ts';
import { type LogStore } from '../log/log-store.ts';
import { MemoryLog } from './memory-log.ts';

const times = { leaseMs: 500, sweepMs: 50, handoverMs: 10_000 };

/** Members of one log, each behind a line of its own that can be cut. */
function memoryWorld(): ConformanceWorld {
  const log = new MemoryLog(systemClock, {});
  let topics = 0;
  return {
    createTopic: (partitions) => {
      topics += 1;
      for (const twin of ['', '.dead']) log.createTopic(`conformance.${topics}${twin}`, partitions);
      return Promise.resolve(`conformance.${topics}`);
    },
    member: () => {
      const line = { cut: false };
      const store = behind(line, log);
      const bus = createLogBus({
        store,
        bootId: randomUUID(),
        clock: systemClock,
        logger: silentLogger,
        times,
      });
      const kill = (): Promise<void> => {
        line.cut = true;
        return Promise.resolve();
      };
      return Promise.resolve({ bus, kill });
    },
    teardown: () => Promise.resolve(),
  };
}

const behind = (line: { cut: boolean }, log: LogStore): LogStore =>
  new Proxy(log, {
    get: (_target, name: keyof LogStore) => {
      const method = log[name].bind(log) as (...args: unknown[]) => unknown;
      if (name === 'listen' || name === 'announce' || name === 'close') return method;
      return (...args: unknown[]) =>
        line.cut ? Promise.reject(new BusUnavailableError('the line is cut')) : method(...args);
    },
  });

busConformance('the memory log', () => Promise.resolve(memoryWorld()));
