interface Slot<V> {
  value: V;
  bytes: number;
}

/**
 * A map bounded by the bytes its callers say that values take. It keeps two generations: a value that is read
 * moves to the young one, and when that holds half of the bound, the old one is dropped whole. So what was used
 * lately stays, and a read costs one look-up with no list to keep in order.
 */
export class GenerationCache<V> {
  readonly #half: number;
  #young = new Map<string, Slot<V>>();
  #old = new Map<string, Slot<V>>();
  #youngBytes = 0;
  #oldBytes = 0;

  constructor(maximumBytes: number) {
    this.#half = maximumBytes / 2;
  }

  get(key: string): V | undefined {
    const young = this.#young.get(key);
    if (young !== undefined) return young.value;
    const old = this.#old.get(key);
    if (old === undefined) return undefined;
    this.set(key, old.value, old.bytes);
    return old.value;
  }

  /** A value over half of the bound is not kept: one alone would push out everything else. */
  set(key: string, value: V, bytes: number): void {
    this.delete(key);
    if (bytes > this.#half) return;
    if (this.#youngBytes + bytes > this.#half) {
      this.#old = this.#young;
      this.#oldBytes = this.#youngBytes;
      this.#young = new Map();
      this.#youngBytes = 0;
    }
    this.#young.set(key, { value, bytes });
    this.#youngBytes += bytes;
  }

  delete(key: string): void {
    this.#youngBytes -= this.#young.get(key)?.bytes ?? 0;
    this.#oldBytes -= this.#old.get(key)?.bytes ?? 0;
    this.#young.delete(key);
    this.#old.delete(key);
  }

  /** Bytes held now, never over the bound. */
  get bytes(): number {
    return this.#youngBytes + this.#oldBytes;
  }

  *values(): Generator<V> {
    for (const { value } of this.#young.values()) yield value;
    for (const { value } of this.#old.values()) yield value;
  }
}
