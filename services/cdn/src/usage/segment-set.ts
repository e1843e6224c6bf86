/**
 * A set of segment numbers in a bit each: a day of 6-second segments takes 1.8 kB, where a `Set` takes hundreds.
 * It grows by doubling up to the highest number added.
 */
export class SegmentSet {
  #bits = new Uint8Array(16);

  has(n: number): boolean {
    return ((this.#bits[n >> 3] ?? 0) & (1 << (n & 7))) !== 0;
  }

  add(n: number): void {
    const at = n >> 3;
    if (at >= this.#bits.length) {
      const grown = new Uint8Array(Math.max(at + 1, this.#bits.length * 2));
      grown.set(this.#bits);
      this.#bits = grown;
    }
    this.#bits[at] = (this.#bits[at] ?? 0) | (1 << (n & 7));
  }

  /** Memory of the bits, in bytes. */
  get bytes(): number {
    return this.#bits.length;
  }
}
