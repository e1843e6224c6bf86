/** What a service says about itself on `/health` and `/ready`. */
export interface Health {
  /** False when the service cannot do its job and a restart may help (`/health` answers 503). */
  healthy: boolean;
  /** False while starting, stopping, or without a dependency it needs (`/ready` answers 503). */
  ready: boolean;
  /** One line per part (loop, consumer, pool): its name and what is wrong, or `ok`. */
  checks: Record<string, string>;
}

/**
 * A running part of Millrace. Every service is made by a `createX(deps): Service` factory; importing its
 * module starts nothing.
 */
export interface Service {
  readonly name: string;
  /** Resolves when the service is ready; rejects when it cannot start. `signal` aborts the start. */
  start(signal: AbortSignal): Promise<void>;
  /** Graceful: readiness goes false, work in flight ends or is handed back, then pools and sockets close. */
  stop(): Promise<void>;
  health(): Health;
}
