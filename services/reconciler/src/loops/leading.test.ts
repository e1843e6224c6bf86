import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { createMetrics, silentLogger } from '@millrace/platform';
import { createManualClock } from '@millrace/testing';
import { probeLoop } from '../probe/probe.ts';
import { type Probe } from '../probe/settings.ts';
import { type LeadingDeps, leadingLoops } from './leading.ts';

const page = readFileSync(
  new URL('../../../../docs/adr/0021-what-loops-are-made-of.md', import.meta.url),
  'utf8',
);
const told = page.split('\n').flatMap((line) => /^\| `([a-z-]+)`/.exec(line)?.[1] ?? []);

describe('the table of ADR 21', () => {
  it('has every loop of the process that leads, and none that there is not', () => {
    const measured = {
      clock: createManualClock(),
      logger: silentLogger,
      metrics: createMetrics({ service: 'reconciler' }),
    };
    const loops = leadingLoops({
      ...measured,
      ...{ store: {}, bus: {}, objects: {}, txt: {}, bell: {}, lease: { lease: 'reconciler', epoch: 1 } },
      kubernetes: { api: { namespace: 'media' }, resyncMs: 1 },
      chores: () => [probeLoop({} as Probe, measured)],
    } as unknown as LeadingDeps);
    // That of the embedded bus.
    const names = [...loops.map(({ name }) => name), 'prune-bus-log'];
    expect(new Set(names).size).toBe(names.length);
    expect([...told].sort()).toEqual(names.sort());
  });
});
