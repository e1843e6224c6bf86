import { type Metrics } from './metrics.ts';

/** The metrics of a term of office: of work that may end before its process does, and that another process goes on with. */
export interface TermMetrics {
  metrics: Metrics;
  /**
   * Ends the term: what its gauges show is shown no longer, and nothing is any more. An old number would be believed
   * beside that of whoever does the work by then. Counters and histograms stay, since they tell what happened here.
   */
  end(): void;
}

export function createTermMetrics(metrics: Metrics): TermMetrics {
  const shown = new Map<string, () => void>();
  let isOver = false;
  const gauge: Metrics['gauge'] = (name, help, labelNames) => {
    const whole = metrics.gauge(name, help, labelNames);
    // Without labels it is there before it is set.
    if (labelNames === undefined) shown.set(name, () => whole.remove());
    return {
      ...whole,
      set: (value, labels) => {
        if (isOver) return;
        shown.set(`${name} ${JSON.stringify(labels ?? {})}`, () => whole.remove(labels));
        whole.set(value, labels);
      },
    };
  };
  const observe: Metrics['observe'] = (name, help, read) => {
    const stop = metrics.observe(name, help, read);
    shown.set(name, stop);
    return stop;
  };
  return {
    metrics: { ...metrics, gauge, observe },
    end: () => {
      isOver = true;
      for (const forget of shown.values()) forget();
      shown.clear();
    },
  };
}
