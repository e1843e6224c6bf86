import { z } from 'zod';

/** Every error code with its HTTP status and a short human title (contract "Errors"). */
export const errorCodes = {
  invalid_request: { status: 400, title: 'The request is not valid.' },
  invalid_phone: { status: 400, title: 'This is not a Saudi or GCC mobile number.' },
  invalid_country: { status: 400, title: 'The country is not supported.' },
  invalid_code: { status: 400, title: 'The code is wrong.' },
  invalid_parts: { status: 400, title: 'The parts do not match what was uploaded.' },
  invalid_state: { status: 400, title: 'The sign-in flow expired or changed.' },
  auth_denied: { status: 400, title: 'Sign-in was refused.' },
  billing_mismatch: { status: 400, title: 'The payment does not match the order.' },
  unauthorized: { status: 401, title: 'Authentication is missing or not valid.' },
  plan_limit_reached: { status: 403, title: 'The plan does not allow this.' },
  domain_not_verified: { status: 403, title: 'The domain is not verified on this project.' },
  insufficient_scope: { status: 403, title: 'This key may not call this route.' },
  banned: { status: 403, title: 'This caller is banned.' },
  account_banned: { status: 403, title: 'This account is blocked.' },
  phone_verification_required: { status: 403, title: 'The account needs a verified phone number.' },
  endpoint_limit_reached: { status: 403, title: 'The project has the most webhook endpoints it may have.' },
  token_missing: { status: 403, title: 'The token is missing.' },
  token_invalid: { status: 403, title: 'The token is not valid for this video.' },
  token_expired: { status: 403, title: 'The token has expired.' },
  origin_missing: { status: 403, title: 'The request names no origin.' },
  domain_mismatch: { status: 403, title: 'The origin is not the domain of the token.' },
  video_unavailable: { status: 403, title: 'The video is not available.' },
  not_found: { status: 404, title: 'There is nothing here.' },
  challenge_not_found: { status: 404, title: 'The phone challenge is unknown.' },
  project_not_empty: { status: 409, title: 'The project still has videos.' },
  hostname_taken: { status: 409, title: 'The hostname was already added.' },
  video_not_ready: { status: 409, title: 'The video is not ready to play.' },
  upload_closed: { status: 409, title: 'The upload is closed.' },
  invalid_video_state: { status: 409, title: 'The video is in a state that does not allow this.' },
  delivery_in_progress: { status: 409, title: 'The delivery is being sent right now.' },
  code_expired: { status: 410, title: 'The code has expired.' },
  unsupported_media_type: { status: 415, title: 'The content type is not supported.' },
  range_not_satisfiable: { status: 416, title: 'The range lies outside of the file.' },
  rate_limited: { status: 429, title: 'Too many requests.' },
  too_many_attempts: { status: 429, title: 'Too many wrong codes.' },
  phone_rate_limited: { status: 429, title: 'Too many codes were sent.' },
  internal_error: { status: 500, title: 'The request could not be completed.' },
  provider_error: { status: 502, title: 'The sign-in provider rejected the request.' },
  sms_send_failed: { status: 502, title: 'The code could not be sent.' },
  billing_provider_error: { status: 502, title: 'The payment provider did not answer.' },
  not_configured: { status: 503, title: 'This feature is not configured here.' },
  sms_not_configured: { status: 503, title: 'Phone verification is not configured here.' },
  billing_paused: { status: 503, title: 'Paid plans are not on sale yet.' },
  billing_unavailable: { status: 503, title: 'Online payment is not configured here.' },
  upload_not_configured: { status: 503, title: 'Uploads are not configured here.' },
  state_unavailable: { status: 503, title: 'The state of this video cannot be confirmed right now.' },
  service_unavailable: { status: 503, title: 'The service cannot answer right now.' },
} as const satisfies Record<string, { status: number; title: string }>;

export type ErrorCode = keyof typeof errorCodes;

/** One field at fault: `path` as in `parts[1].etag`. */
export interface FieldError {
  path: string;
  message: string;
}

/** The body of every error: RFC 9457 problem details with the contract's `code`. */
export const problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.string(),
    detail: z.string().optional(),
    errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
  })
  .meta({ id: 'Problem' });
export type Problem = z.infer<typeof problem>;

/**
 * The problem body for a code.
 * @param docsUrl base of `{docs_url}/errors/<code>`, without a final slash
 * @param status only for the codes that the contract gives two statuses (`invalid_request` as 422)
 */
export function problemOf(
  docsUrl: string,
  code: ErrorCode,
  more: { detail?: string; errors?: readonly FieldError[]; status?: number } = {},
): Problem {
  const { status, title } = errorCodes[code];
  return {
    type: `${docsUrl}/errors/${code}`,
    title,
    status: more.status ?? status,
    code,
    ...(more.detail === undefined ? {} : { detail: more.detail }),
    ...(more.errors === undefined ? {} : { errors: [...more.errors] }),
  };
}

/** A caller's mistake, to be answered with its code. Our own faults are plain errors (`internal_error`). */
export class ProblemError extends Error {
  override readonly name = 'ProblemError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly detail: string | undefined;
  readonly errors: readonly FieldError[] | undefined;
  /** Seconds for `Retry-After`. */
  readonly retryAfter: number | undefined;
  /** To be read by the person at the browser: answered as a page, on routes that have pages for failures. */
  readonly page: boolean;
  constructor(
    code: ErrorCode,
    more: {
      detail?: string;
      errors?: readonly FieldError[];
      status?: number;
      retryAfter?: number;
      page?: boolean;
      cause?: unknown;
    } = {},
  ) {
    super(more.detail ?? errorCodes[code].title, more.cause === undefined ? {} : { cause: more.cause });
    this.code = code;
    this.status = more.status ?? errorCodes[code].status;
    this.detail = more.detail;
    this.errors = more.errors;
    this.retryAfter = more.retryAfter;
    this.page = more.page ?? false;
  }
}

/** A refusal that names the field at fault; `message` goes on after the path, as in `cursor is not of this list`. */
export const fieldProblem = (
  code: ErrorCode,
  path: string,
  message: string,
  more: { cause?: unknown } = {},
): ProblemError =>
  new ProblemError(code, { ...more, detail: `${path} ${message}.`, errors: [{ path, message }] });
