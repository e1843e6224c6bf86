import { CaptionsError } from './problem.ts';

/** When a cue shows, in milliseconds, and WebVTT's settings of where. */
export interface Timing {
  startMs: number;
  endMs: number;
  settings: string;
}

/** WebVTT's and SRT's: hours may be missing in the one, the comma stands for the point in the other. */
const time = String.raw`(?:\d{1,4}:)?[0-5]?\d:[0-5]?\d[.,]\d{1,3}`;
const timingLine = new RegExp(`^(${time})[ \\t]*-->[ \\t]*(${time})(?:[ \\t]+(.*))?$`);
const timeAlone = new RegExp(`^${time}$`);

const percent = String.raw`(?:100(?:\.0{1,9})?|\d{1,2}(?:\.\d{1,9})?)%`;
/** What WebVTT §3.5 knows, but regions: their definitions are not kept. */
const setting = new RegExp(
  '^(?:vertical:(?:rl|lr)|size:' +
    percent +
    `|line:(?:${percent}|-?\\d{1,4})(?:,(?:start|center|end))?` +
    `|position:${percent}(?:,(?:line-left|center|line-right))?` +
    '|align:(?:start|center|end|left|right))$',
);

export const isTimingLine = (line: string): boolean => line.includes('-->');

/**
 * Reads `00:00:01.000 --> 00:00:02.500 align:start`. Settings that WebVTT does not know (SRT has coordinates
 * there) are dropped.
 * @throws {CaptionsError}
 */
export function parseTiming(text: string, line: number): Timing {
  const match = timingLine.exec(text.trim());
  if (match === null) {
    const message = /(?:^|>)\s*-\d/.test(text)
      ? 'a time is negative'
      : 'this is no pair of times like 00:00:01.000 --> 00:00:02.500';
    throw new CaptionsError(line, message);
  }
  const [, start = '', end = '', settings = ''] = match;
  const timing = { startMs: milliseconds(start), endMs: milliseconds(end) };
  if (timing.endMs <= timing.startMs) throw new CaptionsError(line, 'the cue ends before it begins');
  return {
    ...timing,
    settings: settings
      .split(/[ \t]+/)
      .filter((each) => setting.test(each))
      .join(' '),
  };
}

/** Milliseconds of a time within a cue's text; null for what is none. */
export const parseTime = (text: string): number | null => (timeAlone.test(text) ? milliseconds(text) : null);

function milliseconds(text: string): number {
  const [whole = '', fraction = ''] = text.split(/[.,]/);
  const seconds = whole.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
  return seconds * 1000 + Number(fraction.padEnd(3, '0'));
}

/** `01:02:03.004`, as WebVTT writes it. */
export function formatTime(ms: number): string {
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0');
  const fraction = String(ms % 1000).padStart(3, '0');
  return `${two(ms / 3_600_000)}:${two((ms / 60_000) % 60)}:${two((ms / 1000) % 60)}.${fraction}`;
}
