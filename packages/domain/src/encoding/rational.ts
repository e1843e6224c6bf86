import { type Rational } from './types.ts';

const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b));

/** `num/den` in lowest terms. Both must be positive integers. */
export function rational(num: number, den: number): Rational {
  const divisor = gcd(num, den);
  return [num / divisor, den / divisor];
}

/** Reads ffprobe's `30000/1001` or `64:45`; null when it is not a positive fraction. */
export function parseRational(text: string | undefined): Rational | null {
  const match = /^(\d{1,10})[/:](\d{1,10})$/.exec(text ?? '');
  const num = Number(match?.[1] ?? 0);
  const den = Number(match?.[2] ?? 0);
  return num > 0 && den > 0 ? rational(num, den) : null;
}

export const toNumber = ([num, den]: Rational): number => num / den;

/** `30000/1001`, as ffmpeg and playlists write it. */
export const formatRational = ([num, den]: Rational): string => `${num}/${den}`;
