/** A file that is no captions; the message says why, `line` where (counted from 1; null: the whole file). */
export class CaptionsError extends Error {
  override readonly name = 'CaptionsError';
  readonly code = 'invalid_captions';
  readonly line: number | null;
  constructor(line: number | null, message: string) {
    super(line === null ? message : `line ${line}: ${message}`);
    this.line = line;
  }
}
