import { normaliseCueText } from './cue-text.ts';
import { CaptionsError } from './problem.ts';
import { formatTime, isTimingLine, parseTiming, type Timing } from './timing.ts';

/** A cue as it will be written. */
interface Cue extends Timing {
  text: string;
}

/** Lines that stand together, with the number of the first. */
interface Block {
  line: number;
  lines: string[];
}

/**
 * Cues begin with the video: our segments' timeline starts at 0, and RFC 8216 §3.5 wants it said.
 */
const header = 'WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n';

/** C0 but tab, DEL and C1: no text of a caption needs them, and terminals and parsers stumble. */
const controlCharacters = /[\u0001-\u0008\u000b-\u001f\u007f-\u009f]/g;

/**
 * Reads captions, WebVTT by its first line and SRT without it, and writes them as WebVTT of our own: cues by
 * their begin, with only WebVTT's own tags and settings in them. Comments, styles and regions are left out;
 * cues may overlap.
 * @throws {CaptionsError} for what cannot be read, naming the line
 */
export function normaliseCaptions(file: Uint8Array): string {
  const lines = linesOf(file);
  const isVtt = /^WEBVTT(?:[ \t]|$)/.test(lines[0] ?? '');
  const blocks = blocksOf(lines, isVtt ? endOfHeader(lines) : 0);
  const cues = blocks.filter((block) => !isVtt || !isAside(block)).flatMap(cueOf);
  if (cues.length === 0) throw new CaptionsError(null, 'there is no cue in this file');
  cues.sort((a, b) => a.startMs - b.startMs || a.endMs - b.endMs);
  return [header, ...cues.map(write)].join('\n');
}

function linesOf(file: Uint8Array): string[] {
  let text: string;
  try {
    // Takes a byte order mark away.
    text = new TextDecoder('utf-8', { fatal: true }).decode(file);
  } catch {
    throw new CaptionsError(null, 'the file is not UTF-8');
  }
  const lines = text.split(/\r\n|\n|\r/);
  const withNul = lines.findIndex((line) => line.includes('\0'));
  if (withNul >= 0) throw new CaptionsError(withNul + 1, 'there is a NUL character');
  return lines.map((line) => line.replaceAll(controlCharacters, ' '));
}

const isBlank = (line: string): boolean => line.trim() === '';

/** WebVTT's header ends at a blank line, or where a cue begins all the same. */
function endOfHeader(lines: readonly string[]): number {
  const end = lines.findIndex((line, at) => at > 0 && (isBlank(line) || isTimingLine(line)));
  return end < 0 ? lines.length : end;
}

function blocksOf(lines: readonly string[], from: number): Block[] {
  const blocks: Block[] = [];
  let block: Block | null = null;
  for (const [at, line] of lines.entries()) {
    if (at < from) continue;
    if (isBlank(line)) block = null;
    else if (block === null) blocks.push((block = { line: at + 1, lines: [line] }));
    else block.lines.push(line);
  }
  return blocks;
}

/** Comments, styles and regions of WebVTT (§4.1). */
const isAside = ({ lines: [first = '', second = ''] }: Block): boolean =>
  /^(?:NOTE|STYLE|REGION)(?:[ \t]|$)/.test(first) && !isTimingLine(first) && !isTimingLine(second);

/** None for a cue without text. */
function cueOf({ line, lines }: Block): Cue[] {
  const [first = '', second = ''] = lines;
  // A number or name may stand before the times; nobody needs it.
  const at = isTimingLine(first) ? 0 : 1;
  if (at === 1 && !isTimingLine(second)) {
    throw new CaptionsError(line, 'a cue begins with its times, like 00:00:01.000 --> 00:00:02.500');
  }
  const timing = parseTiming(lines[at] ?? '', line + at);
  const textLines = lines.slice(at + 1);
  const stray = textLines.findIndex(isTimingLine);
  if (stray >= 0) {
    throw new CaptionsError(line + at + 1 + stray, 'a blank line must stand between two cues');
  }
  const text = normaliseCueText(textLines.join('\n'), timing, line + at + 1);
  // A tag alone on its line may have left it blank, which would end the cue.
  const kept = text.split('\n').filter((each) => !isBlank(each));
  return kept.length === 0 ? [] : [{ ...timing, text: kept.join('\n') }];
}

function write({ startMs, endMs, settings, text }: Cue): string {
  const times = `${formatTime(startMs)} --> ${formatTime(endMs)}`;
  return `${settings === '' ? times : `${times} ${settings}`}\n${text}\n`;
}
