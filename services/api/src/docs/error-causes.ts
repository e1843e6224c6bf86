import { type ErrorCode } from '@millrace/contract';

/** What brings a code about and what helps (contract "Errors"): the text of its page. */
export const errorCauses: Readonly<Record<ErrorCode, string>> = {
  invalid_request:
    'A field is missing or wrong, the body is not JSON, a cursor or a range of dates is not valid, or an Idempotency-Key came back with another body. `errors` names the fields.',
  invalid_phone: 'The number is no mobile number of Saudi Arabia or another GCC country.',
  invalid_country: '`country` is none of sa, ae, kw, qa, bh, om.',
  invalid_code: 'The code is not the one that was sent.',
  invalid_parts:
    'The list of parts is not what was uploaded: a part is missing, doubled or too small, or an ETag differs. The upload is still open: send what is missing and complete again.',
  invalid_state: 'The sign-in took longer than ten minutes, or began in another browser. Begin again.',
  auth_denied:
    'Sign-in was cancelled at the provider, or the e-mail address belongs to an account that signs in another way.',
  billing_mismatch: 'The payment differs from the order in amount, currency, plan or account.',
  unauthorized: 'The key, session or token is missing, wrong, expired or revoked.',
  plan_limit_reached:
    'The plan does not allow it: stored or uploaded hours, watched minutes, projects, domains, the size of a file, or a quality. Free something, wait for the next period, or change the plan.',
  domain_not_verified: 'The domain is not verified on this project. Create its TXT record and verify it.',
  insufficient_scope: 'A playback-only key may get videos and create playback tokens, and nothing else.',
  banned: 'The phone number or the device is banned.',
  account_banned: 'The account is blocked.',
  phone_verification_required: 'The account must verify a phone number first.',
  endpoint_limit_reached: 'A project has at most five webhook endpoints. Delete one.',
  token_missing: 'The address has no `token`.',
  token_invalid: 'The token is damaged, forged, or belongs to another video.',
  token_expired: 'The token is past its `expiresAt`. Create a new one.',
  origin_missing: 'The request says neither `Origin` nor `Referer`, so that its page cannot be checked.',
  domain_mismatch: 'The page is not on the domain of the token: `https://` and exactly that host, no port.',
  video_unavailable: 'The video is on hold or deleted.',
  not_found:
    'The id is wrong or belongs to another account, the video is deleted, or there is no such route.',
  challenge_not_found: 'The phone challenge is unknown, already used, or of another account.',
  project_not_empty: 'The project still has videos. Delete them first.',
  hostname_taken: 'The host was already added to this account, or another account has verified it.',
  video_not_ready: 'The video is not `ready`, or on hold. Wait for the webhook `video.ready`.',
  upload_closed: 'The upload was completed, cancelled, or has expired.',
  invalid_video_state: 'What was asked for makes no sense in the state that the video is in.',
  delivery_in_progress: 'The delivery is being sent at this moment. Look at the log in a few seconds.',
  code_expired: 'The code is older than ten minutes. Ask for a new one.',
  unsupported_media_type: 'The body must be `application/json` in UTF-8, without a content encoding.',
  range_not_satisfiable: 'The range begins after the end of the file.',
  rate_limited: 'Too many requests in a minute. `Retry-After` says how many seconds to wait.',
  too_many_attempts: 'Five wrong codes closed the challenge. Ask for a new code.',
  phone_rate_limited: 'At most five codes an hour are sent for an account and for a number.',
  internal_error:
    'The request failed through no fault of yours. Try again; tell us its `X-Request-Id` if it stays.',
  provider_error: 'The sign-in provider refused the request or did not answer.',
  sms_send_failed: 'The text message could not be sent. Nothing was stored.',
  billing_provider_error: 'The payment provider did not answer. It will call again by itself.',
  not_configured: 'The operator of this service has not set this feature up.',
  sms_not_configured: 'The operator of this service has no provider of text messages.',
  billing_paused: 'Paid plans are not on sale yet; nothing was charged. The whitelist takes your interest.',
  billing_unavailable: 'The operator of this service has not set online payment up.',
  upload_not_configured: 'The operator of this service has not set up keys for upload tokens.',
  state_unavailable:
    'The CDN has not been able to confirm for a minute that the video may play. Try again soon.',
  service_unavailable:
    'A part of the service does not answer right now. `Retry-After` says when to try again.',
};
