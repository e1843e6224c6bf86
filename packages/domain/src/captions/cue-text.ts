import { CaptionsError } from './problem.ts';
import { formatTime, parseTime, type Timing } from './timing.ts';

/** WebVTT §3.6: the tags there are. Players make elements of them, so nothing else passes. */
const tagForm = /^(c|i|b|u|ruby|rt|v|lang)((?:\.[A-Za-z0-9_-]{1,32}){0,8})(?:\s+([^]*))?$/;
/** What looks like a tag: a name, a time or a slash first. */
const tagForms = /^([A-Za-z0-9/][^>]*)>/;
/** SRT's only tag beside those: colour and face are the player's, the text stays. */
const fontTag = /^\/?font\b/i;
/** Positions of another format that stray into SRT: `{\an8}`. */
const overrides = /\{\\[A-Za-z]{1,4}[0-9]{0,4}\}/g;
/** Longer ones are no tags that a person wrote. */
const maximumTag = 512;
/** Players nest elements as tags are nested. */
const maximumDepth = 8;

const named: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  nbsp: '\u00a0',
  lrm: '\u200e',
  rlm: '\u200f',
};
const reference = /&(?:#(\d{1,7})|#[xX]([0-9A-Fa-f]{1,6})|([a-z]{2,4}));/g;

/**
 * The text of a cue as WebVTT: known tags closed and in order, everything else escaped.
 * @param line the text's first line in its file
 * @throws {CaptionsError} for a tag that WebVTT does not have, or one in another too deep
 */
export function normaliseCueText(source: string, timing: Timing, line: number): string {
  const text = source.replaceAll(overrides, '');
  const out: string[] = [];
  const open: string[] = [];
  let from = 0;
  for (let at = text.indexOf('<'); at >= 0; at = text.indexOf('<', at + 1)) {
    // A `<` that begins no tag is a character: "a < b", "<3".
    const tag = tagForms.exec(text.slice(at + 1, at + maximumTag))?.[1];
    if (tag === undefined) continue;
    const written = tagOf(tag, timing, open);
    if (written === null) {
      if (/^\d/.test(tag)) continue;
      const where = line + (text.slice(0, at).match(/\n/g)?.length ?? 0);
      throw new CaptionsError(where, 'this tag is none of WebVTT (c, i, b, u, ruby, rt, v, lang)');
    }
    out.push(escape(text.slice(from, at)), written);
    if (open.length > maximumDepth) throw new CaptionsError(line, 'tags are nested too deeply');
    at += tag.length + 1;
    from = at + 1;
  }
  out.push(escape(text.slice(from)), ...open.toReversed().map((name) => `</${name}>`));
  return out.join('');
}

/** The tag as it is written, empty where it says nothing; null for what is no tag. Keeps account of open ones. */
function tagOf(tag: string, timing: Timing, open: string[]): string | null {
  if (fontTag.test(tag)) return '';
  if (tag.startsWith('/')) return closing(tag.slice(1).trim(), open);
  const atMs = parseTime(tag);
  if (atMs !== null) return atMs > timing.startMs && atMs < timing.endMs ? `<${formatTime(atMs)}>` : '';
  const match = tagForm.exec(tag.trim());
  if (match === null) return null;
  const [, name = '', classes = '', annotation = ''] = match;
  open.push(name);
  // Only a voice and a language have one.
  const said = name === 'v' || name === 'lang' ? escape(annotation.trim().replaceAll(/\s+/g, ' ')) : '';
  return said === '' ? `<${name}${classes}>` : `<${name}${classes} ${said}>`;
}

/** Closes what was opened since too; an end without a beginning says nothing. Null for a tag unknown. */
function closing(name: string, open: string[]): string | null {
  if (!tagForm.test(name)) return null;
  const at = open.lastIndexOf(name);
  if (at < 0) return '';
  return open
    .splice(at)
    .toReversed()
    .map((each) => `</${each}>`)
    .join('');
}

/** Character references become characters first, so that nothing is escaped twice. */
function escape(text: string): string {
  return text
    .replaceAll(reference, (whole, decimal?: string, hex?: string, name?: string) => {
      if (name !== undefined) return named[name] ?? whole;
      const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal);
      const printable = code >= 0x20 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
      return printable && (code < 0x7f || code > 0x9f) ? String.fromCodePoint(code) : '';
    })
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');
}
