import { type Problem } from '@millrace/contract';

/** The API refused a call, or something in between did. Branch on `code`. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  /** The problem's code; `unknown` when the answer was no problem. */
  readonly code: string;
  readonly problem: Problem | null;
  /** To be told to the service's operators. */
  readonly requestId: string | null;
  /** When to come back, in seconds. */
  readonly retryAfter: number | null;
  constructor(response: Pick<Response, 'status' | 'headers'>, problem: Problem | null) {
    const { status, headers } = response;
    super(
      problem === null ? `HTTP ${status}` : `${status} ${problem.code}: ${problem.detail ?? problem.title}`,
    );
    this.status = status;
    this.code = problem?.code ?? 'unknown';
    this.problem = problem;
    this.requestId = headers.get('x-request-id');
    const retryAfter = headers.get('retry-after');
    this.retryAfter = retryAfter === null ? null : Number(retryAfter);
  }
}
