import { eventsOf, type ObjectiveName } from '../src/objectives.ts';
import { type Meter } from '../src/world.ts';

/** What was added to each metric, by its name. */
export type Samples = ReadonlyMap<string, readonly number[]>;

/**
 * The metrics whose thresholds are crossed, by k6's rules for the two forms that are used here: `rate>=X`, where a
 * rate without samples is none, and `count>0`. @throws Error for any other form
 */
export function crossed(thresholds: Readonly<Record<string, readonly string[]>>, samples: Samples): string[] {
  return Object.entries(thresholds)
    .filter(([name, expressions]) => expressions.some((each) => !holds(each, samples.get(name) ?? [])))
    .map(([name]) => name);
}

function holds(expression: string, values: readonly number[]): boolean {
  const sum = values.reduce((total, value) => total + value, 0);
  if (expression === 'count>0') return sum > 0;
  const [, share] = /^rate>=(0\.\d+)$/.exec(expression) ?? [];
  if (share === undefined) throw new Error(`the threshold ${expression} has a form that is not used here`);
  return values.length > 0 && sum / values.length >= Number(share);
}

/** A meter that keeps what it is told, under the names that k6 has it by. */
export function createSampler(): {
  meter: Meter;
  samples: Samples;
  tagsOf: (name: ObjectiveName) => object[];
} {
  const samples = new Map<string, number[]>();
  const tags: { name: ObjectiveName; tags: object }[] = [];
  const add = (name: string, value: number): void => {
    samples.set(name, [...(samples.get(name) ?? []), value]);
  };
  return {
    samples,
    tagsOf: (name) => tags.filter((each) => each.name === name).map((each) => each.tags),
    meter: {
      event: (name, good, told = {}) => {
        add(name, Number(good));
        add(eventsOf(name), 1);
        if (!good) tags.push({ name, tags: told });
      },
      took: add,
      happened: (name) => add(name, 1),
    },
  };
}
