const headLines = 40;
const tailLines = 160;
const longestLine = 500;

/**
 * Keeps the first and the last lines that a process writes: the cause of a failure is often among the first,
 * its end among the last, and a damaged file may give a million between.
 */
export class StderrLines {
  readonly #head: string[] = [];
  readonly #tail: string[] = [];
  #dropped = 0;

  add(line: string): void {
    const text = line.slice(0, longestLine);
    if (this.#head.length < headLines) {
      this.#head.push(text);
      return;
    }
    this.#tail.push(text);
    if (this.#tail.length > tailLines) {
      this.#tail.shift();
      this.#dropped += 1;
    }
  }

  text(): string {
    const gap = this.#dropped > 0 ? [`… ${this.#dropped} lines …`] : [];
    return [...this.#head, ...gap, ...this.#tail].join('\n');
  }
}
