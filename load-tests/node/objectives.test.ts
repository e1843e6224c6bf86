import { describe, expect, it } from '@jest/globals';
import { slos } from '../../scripts/slo/slos.ts';
import { bounds, eventsOf, type ObjectiveName, objectives, thresholdsFor } from '../src/objectives.ts';
import { tests } from '../src/tests.ts';
import { crossed, createSampler } from './thresholds.ts';

const names = Object.keys(objectives) as ObjectiveName[];

describe.each(names)('the threshold of %s', (name) => {
  const { atLeast } = objectives[name];
  const judge = (good: number, bad: number): string[] => {
    const { meter, samples } = createSampler();
    for (let i = 0; i < good + bad; i += 1) meter.event(name, i < good);
    return crossed(thresholdsFor([name]), samples);
  };
  /** Bad ones in a thousand that may be. */
  const allowed = Math.round(1_000 * (1 - atLeast));

  it('is met with as many bad events as the objective allows, and crossed with one more', () => {
    expect(judge(1_000 - allowed, allowed)).toEqual([]);
    expect(judge(1_000 - allowed - 1, allowed + 1)).toEqual([name]);
  });

  it('is crossed when nothing was measured', () => {
    expect(judge(0, 0)).toEqual([name, eventsOf(name)]);
  });

  it('has a form that k6 reads, and is used by a test', () => {
    expect(thresholdsFor([name])).toEqual({
      [name]: [expect.stringMatching(/^rate>=0\.\d+$/)],
      [`${name}_events`]: ['count>0'],
    });
    expect(Object.values(tests).flatMap((test): ObjectiveName[] => [...test.objectives])).toContain(name);
  });
});

describe('the promises of the service', () => {
  const ofPromises = names.filter((name) => objectives[name].slo !== null);

  it('are measured all', () => {
    expect(ofPromises.map((name) => objectives[name].slo).sort()).toEqual(
      slos.map(({ name }) => name).sort(),
    );
  });

  it.each(ofPromises)('have the share of %s', (name) => {
    const { atLeast, slo } = objectives[name];
    expect(slos.find((each) => each.name === slo)?.objective).toBe(atLeast);
  });

  it('have these bounds', () => {
    const promiseOf = (name: string): string => slos.find((slo) => slo.name === name)?.promise ?? '';
    expect(promiseOf('hold')).toContain(`within ${bounds.holdMs / 1_000} s`);
    expect(promiseOf('webhook')).toContain(`within ${bounds.webhookMs / 1_000} s`);
    expect([bounds.readyLengths, bounds.shortestMs]).toEqual([5, 60_000]);
    expect(promiseOf('ready')).toContain('within five times its length (of one minute at least)');
  });
});
