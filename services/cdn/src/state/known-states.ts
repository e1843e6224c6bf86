import { GenerationCache } from '../generation-cache.ts';

/** What a state must have to be kept: a version that rises with every change. */
interface Versioned {
  readonly version: number;
}

/** What makes a state that was read believed. */
export interface Confirmation {
  /** The state was true at this instant, by what was read of it alone. */
  confirmedMs: number;
  /** True while the tail has carried every change since it was read, so that reading on confirms it too. */
  tailed: boolean;
}

/** A state as this process knows it. */
export interface Known<S> extends Confirmation {
  /** Null: the record does not know the key. */
  state: S | null;
  /** True when changes may have been missed since: it is read again before it is believed. */
  suspect: boolean;
}

/** Cached states of one kind, by key, with what confirms each. */
export class KnownStates<S extends Versioned> {
  readonly #cache: GenerationCache<Known<S>>;

  constructor(maximumBytes: number) {
    this.#cache = new GenerationCache(maximumBytes);
  }

  get(key: string): Known<S> | undefined {
    return this.#cache.get(key);
  }

  /** Keeps what was read from the record, unless a newer version is known; either way it is confirmed anew. */
  put(key: string, state: S | null, confirmation: Confirmation): Known<S> {
    const known = this.#cache.get(key)?.state ?? null;
    const newest = newer(known, state) ?? null;
    const entry = { state: newest, ...confirmation, suspect: false };
    this.#cache.set(key, entry, bytesOf(newest));
    return entry;
  }

  /** Takes a change from the tail. Keys that nobody has asked for are not kept. */
  change(key: string, state: S): void {
    const known = this.#cache.get(key);
    if (known === undefined) return;
    known.state = newer(known.state, state);
    // A title or branding may have grown.
    this.#cache.set(key, known, bytesOf(known.state));
  }

  drop(key: string): void {
    this.#cache.delete(key);
  }

  /** Changes may have been missed: what the tail had confirmed by now stays so, nothing later is. */
  suspectAll(tailReadUpToMs: number): void {
    for (const known of this.#cache.values()) {
      if (known.tailed) known.confirmedMs = Math.max(known.confirmedMs, tailReadUpToMs);
      known.tailed = false;
      known.suspect = true;
    }
  }

  get bytes(): number {
    return this.#cache.bytes;
  }
}

/** The state with the higher version; the first when both have the same. */
export function newer<S extends Versioned>(a: S | null, b: S | null): S | null {
  if (a === null || b === null) return a ?? b;
  return b.version > a.version ? b : a;
}

/** Sets a state unless the map has a newer one: a message that comes again may be older than the last. */
export function keepNewer<S extends Versioned>(states: Map<string, S>, key: string, state: S): void {
  states.set(key, newer(states.get(key) ?? null, state) ?? state);
}

/** Object, strings and map slot, roughly; states are a handful of short strings. */
const bytesOf = (state: Versioned | null): number =>
  300 + (state === null ? 0 : 2 * JSON.stringify(state).length);
