import { type Logger } from '@millrace/platform';

/** Things to undo, last first; one that fails does not keep the others. */
export class Undo {
  readonly #steps: (() => unknown)[] = [];
  readonly #logger: Logger;
  constructor(logger: Logger) {
    this.#logger = logger;
  }
  add(step: () => unknown): void {
    this.#steps.push(step);
  }
  async run(): Promise<void> {
    for (const step of this.#steps.splice(0).reverse()) {
      try {
        await step();
      } catch (error) {
        this.#logger.error({ err: error }, 'did not stop cleanly');
      }
    }
  }
}

/** Starts something; undoes what was started when it cannot. */
export async function startOrUndo<T>(logger: Logger, start: (undo: Undo) => Promise<T>): Promise<T> {
  const undo = new Undo(logger);
  try {
    return await start(undo);
  } catch (error) {
    await undo.run();
    throw error;
  }
}
