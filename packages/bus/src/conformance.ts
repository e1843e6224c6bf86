import { afterAll, afterEach, beforeAll, describe } from '@jest/globals';
import { deadLetterTests } from './conformance/dead-letters.ts';
import { deliveryTests } from './conformance/delivery.ts';
import { groupTests } from './conformance/groups.ts';
import { type ConformanceWorld, WorldBench } from './conformance/harness.ts';
import { publishingTests } from './conformance/publishing.ts';

export { type ConformanceWorld };

/**
 * Registers the jest tests that every adapter of the `Bus` port passes. They assume no instant timings, but
 * wait for what they want to see; crashed members should be missed within some seconds (short leases, session
 * timeouts). `makeWorld` is called once.
 */
export function busConformance(name: string, makeWorld: () => Promise<ConformanceWorld>): void {
  describe(`${name} as a Bus`, () => {
    const bench = new WorldBench(makeWorld);
    beforeAll(() => bench.start());
    afterEach(() => bench.closeBuses());
    afterAll(() => bench.stop());
    describe('publishing', () => publishingTests(bench));
    describe('delivery', () => deliveryTests(bench));
    describe('dead letters', () => deadLetterTests(bench));
    describe('groups', () => groupTests(bench));
  });
}
