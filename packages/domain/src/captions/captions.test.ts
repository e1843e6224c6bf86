import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { canonicalLanguage, CaptionsError, languageName, normaliseCaptions } from './index.ts';

const header = 'WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n\n';
const normalise = (text: string): string => normaliseCaptions(Buffer.from(text));
/** What follows our header. */
const cues = (text: string): string => normalise(text).slice(header.length);
/** The one cue's text. */
const textOf = (text: string): string =>
  cues(`1\n00:00:01,000 --> 00:00:09,000\n${text}\n`).trimEnd().replace(/^.*\n/, '');
const failure = (file: string | Uint8Array): [number | null, string] => {
  try {
    normaliseCaptions(Buffer.from(file));
  } catch (error) {
    if (error instanceof CaptionsError) {
      expect([error.name, error.code]).toEqual(['CaptionsError', 'invalid_captions']);
      return [error.line, error.message];
    }
    throw error;
  }
  throw new Error('it was taken');
};

const srt = `1
00:00:01,000 --> 00:00:02,500
Hello, <i>world</i>.
Second line.

2
00:01:00,5 --> 01:00:01,000 X1:10 X2:20
Bye.
`;

describe('normaliseCaptions', () => {
  it('writes SRT as WebVTT whose time begins with the video [CAP-201]', () => {
    expect(normalise(srt)).toBe(
      `${header}00:00:01.000 --> 00:00:02.500\nHello, <i>world</i>.\nSecond line.\n` +
        '\n00:01:00.500 --> 01:00:01.000\nBye.\n',
    );
  });

  it('keeps of WebVTT the cues and their settings, and leaves the rest out [CAP-201]', () => {
    const vtt = `WEBVTT - title
Kind: captions

STYLE
::cue { background: url(https://evil.example/) }

REGION
id:fred

NOTE a comment
of two lines

intro
01:02.000 --> 01:03.000 region:fred align:start position:10%,line-left size:101% line:-1 onload:x
One

01:03.000 --> 100:00:00.000
Two`;
    expect(normalise(vtt)).toBe(
      `${header}00:01:02.000 --> 00:01:03.000 align:start position:10%,line-left line:-1\nOne\n` +
        '\n00:01:03.000 --> 100:00:00.000\nTwo\n',
    );
  });

  it('takes what it wrote, and changes nothing of it', () => {
    for (const text of [srt, '\ufeffWEBVTT\n\n00:01.000 --> 00:02.000\na & b <3 &lrm;<v Ann>x'])
      expect(normalise(normalise(text))).toBe(normalise(text));
  });

  it('takes a byte order mark and line ends of every kind', () => {
    const expected = normalise(srt);
    for (const end of ['\r\n', '\r']) {
      expect(normalise(`\ufeff${srt.replaceAll('\n', end)}`)).toBe(expected);
    }
    expect(cues('\ufeffWEBVTT\r\n\r\n00:01.000 --> 00:02.000\r\nA')).toBe(
      '00:00:01.000 --> 00:00:02.000\nA\n',
    );
    expect(cues('WEBVTT\n00:01.000 --> 00:02.000\nA')).toBe('00:00:01.000 --> 00:00:02.000\nA\n');
  });

  it.each([
    ['a blank line that is not empty', '00:01.000 --> 00:02.000\nA\n \t\n00:03.000 --> 00:04.000\nB\n'],
    ['white space around the times', ' 00:01.000 --> 00:02.000\t\nA\n\n  00:03.000-->00:04.000 \nB\n'],
    ['an arrow in the header', 'WEBVTT -->\n\n00:01.000 --> 00:02.000\nA\n\n00:03.000 --> 00:04.000\nB\n'],
  ])('takes %s', (_what, text) => {
    expect(cues(text)).toBe('00:00:01.000 --> 00:00:02.000\nA\n\n00:00:03.000 --> 00:00:04.000\nB\n');
  });

  it('sorts by begin, and lets cues overlap', () => {
    const text = '00:05.000 --> 00:09.000\nC\n\n00:01.000 --> 00:07.000\nB\n\n00:01.000 --> 00:02.000\nA\n';
    const starts = cues(text).match(/^[ABC]$/gm);
    expect(starts).toEqual(['A', 'B', 'C']);
  });

  it('leaves out cues without text, but not all of them', () => {
    expect(cues('00:01.000 --> 00:02.000\n\n00:03.000 --> 00:04.000\nB\n')).toBe(
      '00:00:03.000 --> 00:00:04.000\nB\n',
    );
    expect(failure('WEBVTT\n\n00:01.000 --> 00:02.000\n<font>\n')).toEqual([
      null,
      'there is no cue in this file',
    ]);
  });

  it.each<[string, string | Uint8Array, number | null]>([
    ['nothing', '', null],
    ['only a header', 'WEBVTT\n', null],
    ['a header that does not end', 'WEBVTT', null],
    ['text of WebVTT that is in no cue', 'WEBVTT\n\nstray\n', 3],
    ['what only looks like a comment', 'WEBVTT\n\na NOTE b\n', 3],
    ['a comment in SRT', 'no WEBVTT\n00:01.000 --> 00:02.000\nA\n\nNOTE x', 5],
    ['times right after times', '00:01.000 --> 00:02.000\n00:03.000 --> 00:04.000\nA', 2],
    ['NUL at once', '\0', 1],
    ['prose', 'Hello\n', 1],
    ['JSON', '{"cues": []}', 1],
    ['a name that only begins like WebVTT', 'WEBVTTX\n\n00:01.000 --> 00:02.000\nA', 1],
    ['text that is in no cue', '00:01.000 --> 00:02.000\nA\n\nstray\n', 4],
    ['cues without a blank line between', '1\n00:01.000 --> 00:02.000\nA\n2\n00:03.000 --> 00:04.000\nB', 5],
    ['a negative begin', '\n1\n-00:00:01,000 --> 00:00:02,000\nA', 3],
    ['a negative end', '00:00:01,000 --> -00:00:02,000\nA', 1],
    ['a cue that ends before it begins', '1\n00:00:03,000 --> 00:00:02,000\nA', 2],
    ['a cue of no length', '1\n00:00:03,000 --> 00:00:03,000\nA', 2],
    ['minutes past the hour', '00:60:00.000 --> 00:61:00.000\nA', 1],
    ['seconds without a fraction', '00:00:01 --> 00:00:02\nA', 1],
    ['times without end', `${'9'.repeat(400)}:00:01.000 --> 00:00:02.000\nA`, 1],
    ['two arrows', '00:01.000 --> 00:02.000 --> 00:03.000\nA\n\n00:01.000 -->\nB', 4],
    ['NUL', '1\n00:00:01,000 --> 00:00:02,000\nA\0', 3],
    ['bytes that are not UTF-8', Buffer.from([0x57, 0xff, 0xfe]), null],
    ['UTF-16', Buffer.from(`\ufeff${srt}`, 'utf16le'), null],
    ['a script', '1\n00:00:01,000 --> 00:00:02,000\nA\n<script>alert(1)</script>\nB\nC', 4],
    ['an element in capitals', '1\n00:00:01,000 --> 00:00:02,000\n<IMG src=x onerror=alert(1)>', 3],
    ['an attribute on a tag', '1\n00:00:01,000 --> 00:00:02,000\n<b\\onclick=x>A', 3],
    ['an unknown end', '1\n00:00:01,000 --> 00:00:02,000\n</div>', 3],
    ['nine tags in each other', `1\n00:00:01,000 --> 00:00:02,000\n${'<b>'.repeat(9)}A`, 3],
  ])('refuses %s and names the line [CAP-202, CAP-210]', (_what, file, line) => {
    const [at, message] = failure(file);
    expect(at).toBe(line);
    expect(message).toMatch(line === null ? /^[a-z]/ : new RegExp(`^line ${line}: .`));
  });

  it('says of NUL that it is there', () => {
    expect(failure('\0')).toEqual([1, 'line 1: there is a NUL character']);
  });

  it('says of a negative time that it is one', () => {
    for (const times of ['-00:00:01,000 --> 00:00:02,000', '00:00:01,000 -->  -00:00:02,000']) {
      expect(failure(`${times}\nA`)[1]).toBe('line 1: a time is negative');
    }
    expect(failure('00:00:01-1 --> 00:00:02,000\nA')[1]).toMatch(/^line 1: this is no pair of times/);
  });

  it.each([
    ['a < b > c & d', 'a &lt; b &gt; c &amp; d'],
    ['I <3 you', 'I &lt;3 you'],
    ['&lt;script&gt; &amp;lt; &copy;', '&lt;script&gt; &amp;lt; &amp;copy;'],
    ['&#60;script&#x3E; &#0;&#xD800;&#x110000;x', '&lt;script&gt; x'],
    ['<c.yellow.bg_blue onclick=x>A</c>', '<c.yellow.bg_blue>A</c>'],
    ['<v.loud Ann  "Q"\n& Bob>A</v>', '<v.loud Ann "Q" &amp; Bob>A</v>'],
    ['<lang en-GB>A</lang> <ruby>B<rt>C</rt></ruby>', '<lang en-GB>A</lang> <ruby>B<rt>C</rt></ruby>'],
    ['<b><i>A</b></i>', '<b><i>A</i></b>'],
    ['<i>A', '<i>A</i>'],
    ['<i>A</ i >', '<i>A</i>'],
    ['<b>A</i>B</b>', '<b>AB</b>'],
    [`${'<b>'.repeat(8)}A`, `${'<b>'.repeat(8)}A${'</b>'.repeat(8)}`],
    ['<v>A</v>', '<v>A</v>'],
    ['<v Font>A</v>', '<v Font>A</v>'],
    ['A</i>', 'A'],
    ['<font color="#fff">A</font>', 'A'],
    ['{\\an8}A', 'A'],
    ['{\\b}{\\fs20}A', 'A'],
    ['A<00:00:00.500>B<00:00:01.000>C<00:00:09.000>D', 'ABCD'],
    ['&quot;&nbsp;&lrm;&rlm;x', '"\u00a0\u200e\u200fx'],
    ['|&#31;|&#32;|&#x7e;|&#x7f;|&#x9f;|&#xa0;|', '|| |~|||\u00a0|'],
    ['|&#xd7ff;|&#xd800;|&#xdfff;|&#xe000;|&#x10ffff;|', '|\ud7ff|||\ue000|\u{10ffff}|'],
    ['A<00:00:02.000>B<00:00:10.000>C<1>', 'A<00:00:02.000>BC&lt;1&gt;'],
    [`A<v ${'x'.repeat(600)}>`, `A&lt;v ${'x'.repeat(600)}&gt;`],
    ['a\u0007b\u0085c\ttab', 'a b c\ttab'],
  ])('writes %j as %j', (given, written) => {
    expect(textOf(given)).toBe(written);
  });

  it('writes for any text either nothing or cues of the known tags alone', () => {
    const piece = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('<', '>', '</', '<b>', '</b>', '<v ', '-->', '&', '&#60;', '\n', '\n\n', '<script>'),
    );
    const known = /<\/?(?:c|i|b|u|ruby|rt|v|lang)(?:\.[\w-]+)*(?: [^<>\n]+)?>|<\d\d:\d\d:\d\d\.\d{3}>/g;
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        let written: string;
        try {
          written = cues(`00:00:01.000 --> 00:00:09.000\n${pieces.join('')}`);
        } catch (error) {
          expect(error).toBeInstanceOf(CaptionsError);
          return;
        }
        const [first, ...text] = written.split('\n');
        expect(first).toBe('00:00:01.000 --> 00:00:09.000');
        expect(text.join('\n')).not.toContain('\n\n');
        expect(text.join('\n').replaceAll(known, '')).not.toMatch(/[<>]/);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('canonicalLanguage', () => {
  it.each([
    ['en', 'en'],
    ['EN-us', 'en-US'],
    ['zh-hant-tw', 'zh-Hant-TW'],
    ['iw', 'he'],
    ['ca-es-VALENCIA', 'ca-ES-valencia'],
    ['de-STUND', 'de-stund'],
  ])('writes %s as %s [CAP-203]', (given, written) => {
    expect(canonicalLanguage(given)).toBe(written);
  });

  it.each(['', 'e', 'english1', 'en_US', 'en-', 'und', 'und-Latn', 'x-mine', 'en-a', 'de-1996-1996', '../x'])(
    'knows no language %j [CAP-203]',
    (given) => {
      expect(canonicalLanguage(given)).toBeNull();
    },
  );

  it('knows none that is too long', () => {
    expect(canonicalLanguage(`en-x-${'abcdefgh-'.repeat(3)}abc`)).not.toBeNull();
    expect(canonicalLanguage(`en-x-${'abcdefgh-'.repeat(3)}abcd`)).toBeNull();
  });
});

describe('languageName', () => {
  it.each([
    ['de', 'Deutsch'],
    ['pt-BR', 'português (Brasil)'],
    ['ar', 'العربية'],
    ['qzz', 'qzz'],
  ])('of %s is %s', (tag, name) => {
    expect(languageName(tag)).toBe(name);
  });
});
