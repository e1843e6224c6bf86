export interface UsagePeriod {
  /** 00:00 UTC, inclusive. */
  start: Date;
  /** 00:00 UTC, exclusive: the next period's start. */
  end: Date;
}

/**
 * The usage period that an instant lies in: from 00:00 UTC on the account's anchor day of a month, or that
 * month's last day when it is shorter, to the next such day (contract MET-001).
 *
 * @param anchorDay 1 to 31
 */
export function usagePeriodAt(anchorDay: number, now: Date): UsagePeriod {
  const year = now.getUTCFullYear();
  const month = now.getUTCMonth();
  const here = anchorIn(year, month, anchorDay);
  return now < here
    ? { start: anchorIn(year, month - 1, anchorDay), end: here }
    : { start: here, end: anchorIn(year, month + 1, anchorDay) };
}

/** `month` may be −1 or 12: the year before or after. */
function anchorIn(year: number, month: number, anchorDay: number): Date {
  const lastDay = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  return new Date(Date.UTC(year, month, Math.min(anchorDay, lastDay)));
}
