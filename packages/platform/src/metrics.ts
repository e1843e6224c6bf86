import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** Values of the labels that a metric was made with; another label is a type error here, not a throw at run time. */
type Labels<L extends string> = Partial<Record<L, string | number>>;

/**
 * A service's metrics. Asking for a name again gives the same metric, so that parts need not pass metrics
 * around. Labels are few and low in number of values: route patterns, codes, states; never ids.
 */
export interface Metrics {
  counter<const L extends string = never>(
    name: string,
    help: string,
    labelNames?: readonly L[],
  ): { inc(labels?: Labels<L>, by?: number): void };
  gauge<const L extends string = never>(
    name: string,
    help: string,
    labelNames?: readonly L[],
  ): {
    set(value: number, labels?: Labels<L>): void;
    /** Shows this series no longer, until it is set again. */
    remove(labels?: Labels<L>): void;
    /** The same of every series. */
    clear(): void;
  };
  /**
   * A gauge that is read when it is scraped; naming it again replaces what is read.
   * @returns shows it no longer, unless it was named again
   */
  observe(name: string, help: string, read: () => number): () => void;
  /** @param buckets upper bounds, in the unit of the name */
  histogram<const L extends string = never>(
    name: string,
    help: string,
    buckets: readonly number[],
    labelNames?: readonly L[],
  ): {
    observe(value: number, labels?: Labels<L>): void;
    /** Shows a series before its first value: else no rate sees that one. */
    zero(labels: Labels<L>): void;
  };
  /** The Prometheus text format. */
  render(): Promise<string>;
  readonly contentType: string;
}

/**
 * A registry of its own for each service.
 * @param options.process also CPU, memory and event loop of this process; once per process is enough
 */
export function createMetrics(options: { service: string; process?: boolean }): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ service: options.service });
  if (options.process === true) collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const once = <T>(name: string, make: () => T): T =>
    (registry.getSingleMetric(name) as T | undefined) ?? make();
  return {
    counter: (name, help, labelNames = []) => {
      const metric = once(name, () => new Counter({ name, help, labelNames: [...labelNames], registers }));
      return { inc: (labels = {}, by = 1) => metric.inc(labels, by) };
    },
    gauge: (name, help, labelNames = []) => {
      const metric = once(name, () => new Gauge({ name, help, labelNames: [...labelNames], registers }));
      return {
        set: (value, labels = {}) => metric.set(labels, value),
        remove: (labels = {}) => metric.remove(labels),
        clear: () => {
          metric.reset();
          // Without labels it would show 0.
          metric.remove({});
        },
      };
    },
    observe: (name, help, read) => {
      registry.removeSingleMetric(name);
      const gauge = new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read());
        },
      });
      return () => {
        if (registry.getSingleMetric(name) === gauge) registry.removeSingleMetric(name);
      };
    },
    histogram: (name, help, buckets, labelNames = []) => {
      const metric = once(
        name,
        () => new Histogram({ name, help, buckets: [...buckets], labelNames: [...labelNames], registers }),
      );
      return {
        observe: (value, labels = {}) => metric.observe(labels, value),
        zero: (labels) => metric.zero(labels),
      };
    },
    render: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
