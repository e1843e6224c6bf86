/** `Retry-After` in its two forms (RFC 9110 §10.2.3): seconds, or an HTTP date in the preferred format. */
const seconds = /^\d{1,9}$/;
const httpDate = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** How long a receiver asks to be left alone, in milliseconds from `now`; null when it does not, or unreadably. */
export function readRetryAfter(value: string | undefined, now: Date): number | null {
  const text = value?.trim() ?? '';
  if (seconds.test(text)) return Number(text) * 1_000;
  if (!httpDate.test(text)) return null;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.max(0, at - now.getTime());
}
