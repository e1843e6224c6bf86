/** Stands in for k6's module `k6/metrics`: keeps what is added. */

/** What was added to each metric, by its name. Only what a script declares has an entry. */
type Registry = Map<string, number[]>;
let current: Registry = new Map();

/** Metrics that are declared from now on, by the next script, are kept apart. */
export const startRegistry = (): Registry => (current = new Map<string, number[]>());

class Metric {
  readonly #values: number[] = [];

  constructor(name: string) {
    if (current.has(name)) throw new Error(`the metric ${name} is declared twice`);
    current.set(name, this.#values);
  }

  add(value: number | boolean): void {
    this.#values.push(Number(value));
  }
}

export class Counter extends Metric {}
export class Rate extends Metric {}
export class Trend extends Metric {}
