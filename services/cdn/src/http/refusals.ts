import { type ErrorCode, errorCodes, problemOf } from '@millrace/contract';

/** Problem bodies, made once per code. */
export interface Refusals {
  of(code: ErrorCode): { status: number; body: Buffer };
}

export function createRefusals(docsUrl: string): Refusals {
  const made = new Map<ErrorCode, { status: number; body: Buffer }>();
  return {
    of(code) {
      const known = made.get(code);
      if (known !== undefined) return known;
      const body = Buffer.from(JSON.stringify(problemOf(docsUrl, code)));
      const refusal = { status: errorCodes[code].status, body };
      made.set(code, refusal);
      return refusal;
    },
  };
}
