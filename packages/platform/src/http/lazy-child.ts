import { type Logger } from '../logger.ts';

/** A child that is made when it first says something: most requests have nothing to say but their one line. */
export const lazyChild = (parent: Logger, fields: object): Logger => new LazyChild(parent, fields);

class LazyChild implements Logger {
  readonly #parent: Logger;
  readonly #fields: object;
  #made: Logger | undefined;

  constructor(parent: Logger, fields: object) {
    this.#parent = parent;
    this.#fields = fields;
  }

  get #child(): Logger {
    return (this.#made ??= this.#parent.child(this.#fields));
  }

  debug(fields: object, message: string): void {
    this.#child.debug(fields, message);
  }
  info(fields: object, message: string): void {
    this.#child.info(fields, message);
  }
  warn(fields: object, message: string): void {
    this.#child.warn(fields, message);
  }
  error(fields: object, message: string): void {
    this.#child.error(fields, message);
  }
  child(fields: object): Logger {
    return this.#child.child(fields);
  }
}
