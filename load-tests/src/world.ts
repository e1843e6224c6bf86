import { type HappenedName, type ObjectiveName, type TookName } from './objectives.ts';
import { type Settings } from './settings.ts';

/** What came back for a request. */
export interface Answer {
  /** HTTP status; 0 when there was no answer at all. */
  status: number;
  /** The body; empty when it was asked to be dropped. */
  text: string;
  /** A header by its name in any case. */
  header(name: string): string | undefined;
}

export interface Asking {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  headers?: Readonly<Record<string, string>>;
  body?: string | ArrayBuffer;
  /** Names the request in k6's output in place of its address, which has ids and tokens in it. */
  name: string;
  /** A refusal is an answer like any other; else all but 200 to 299 are failures in k6's own figures. */
  refusable?: boolean;
  /** Reads the body and forgets it: segments are many and large. */
  drop?: boolean;
}

/** How a scenario talks to the service. Never rejects: whatever happens is an answer. */
export interface Http {
  send(url: string, asking: Asking): Promise<Answer>;
}

export interface Clock {
  /** Milliseconds since some moment; only differences count. */
  now(): number;
  sleep(ms: number): Promise<void>;
}

/** Where a scenario says what it saw. */
export interface Meter {
  /** One event of an objective (`objectives.ts`), good or bad. Tags say more of it where k6's output keeps them. */
  event(objective: ObjectiveName, good: boolean, tags?: Readonly<Record<string, string>>): void;
  /** How long something took, for the reader; nothing is judged by it. */
  took(what: TookName, ms: number): void;
  /** That something happened, for the reader. */
  happened(what: HappenedName): void;
}

/** Everything that the scenarios need of where they run. */
export interface World {
  http: Http;
  clock: Clock;
  meter: Meter;
  /** From 0 to below 1. */
  random(): number;
  /** Shown to whoever runs the test; without secrets. */
  log(message: string): void;
  settings: Settings;
}
