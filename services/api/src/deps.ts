import { type ObjectStore } from '@millrace/objects';
import { type Clock, type Logger, type Metrics, type Site, type TxtLookup } from '@millrace/platform';
import { type Database } from '@millrace/store';
import { type ApiConfig } from './config.ts';

export interface ApiDeps {
  config: ApiConfig;
  store: Database;
  objects: ObjectStore;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  /** Asks sign-in providers; `globalThis.fetch` unless told. */
  fetch?: typeof fetch;
  /** Pages on the customers' port beside the routes. */
  site?: Site;
  /** Compare every answer with its schema: in tests. */
  checkAnswers?: boolean;
}

/** What features get: the service's own parts beside what it was given. */
export interface FeatureDeps extends ApiDeps {
  txt: TxtLookup;
}
