import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { splitAtLinks, splitVttAtPictures } from './links.ts';

/** A line as it stands and as it must stand with the query parameter `p` (as `p=…`) on each of its links. */
interface Line {
  plain: string;
  joined: (parameter: string) => string;
}

const same = (text: string): Line => ({ plain: text, joined: () => text });

const path = fc.stringMatching(/^[a-z0-9./_~-]{1,20}$/);
const link: fc.Arbitrary<Line> = fc
  .record({
    path,
    query: fc.option(fc.stringMatching(/^[a-z0-9=&?]{1,9}$/), { nil: null }),
    fragment: fc.option(fc.stringMatching(/^[a-z0-9=,]{1,9}$/), { nil: null }),
  })
  .map(({ path, query, fragment }) => {
    const tail = fragment === null ? '' : `#${fragment}`;
    return {
      plain: path + (query === null ? '' : `?${query}`) + tail,
      joined: (parameter) => `${path}?${parameter}${query === null ? '' : `&${query}`}${tail}`,
    };
  });

const quoted = fc.string({ unit: 'grapheme', maxLength: 12 }).map((text) => text.replaceAll(/["\r\n]/g, ''));
/** Names beside `URI`; quoted values try to look like one. */
const attribute: fc.Arbitrary<Line> = fc.oneof(
  link.map(({ plain, joined }) => ({
    plain: `URI="${plain}"`,
    joined: (parameter: string) => `URI="${joined(parameter)}"`,
  })),
  fc
    .tuple(fc.constantFrom('NAME', 'X-URI', 'URI-X', 'LANGUAGE'), fc.oneof(quoted, fc.constant('x,URI=')))
    .map(([name, value]) => same(`${name}="${value}"`)),
  fc.constantFrom('BANDWIDTH=1280000', 'DEFAULT=YES', 'RESOLUTION=1920x1080', 'URI=bare', 'URI=""').map(same),
);
const tag: fc.Arbitrary<Line> = fc
  .tuple(
    fc.constantFrom('EXT-X-MAP', 'EXT-X-MEDIA', 'EXT-X-KEY'),
    fc.array(attribute, { minLength: 1, maxLength: 5 }),
  )
  .map(([name, attributes]) => ({
    plain: `#${name}:${attributes.map(({ plain }) => plain).join(',')}`,
    joined: (parameter) => `#${name}:${attributes.map(({ joined }) => joined(parameter)).join(',')}`,
  }));
const other = fc
  .constantFrom(
    '#EXTM3U',
    '#EXTINF:6.006000,',
    '#EXTINF:6.006000,title URI="no/link"',
    '#EXT-X-BYTERANGE:10@0',
    '#EXT-X-ENDLIST',
    '# a comment with URI="no/link"',
    '#',
    '',
    '  ',
  )
  .map(same);
const line = fc.oneof(link, tag, other);

const token = fc.stringMatching(/^[A-Za-z0-9_.-]{0,40}$/);
const playlist = fc.record({
  lines: fc.array(line, { maxLength: 12 }),
  lineEnd: fc.constantFrom('\n', '\r\n'),
  last: fc.boolean(),
});

describe('splitAtLinks', () => {
  it('joined with a token is the playlist with the token on each link and nothing else changed', () => {
    fc.assert(
      fc.property(playlist, token, ({ lines, lineEnd, last }, text) => {
        const parameter = `token=${text}`;
        const render = (each: (line: Line) => string): string =>
          lines.map(each).join(lineEnd) + (last ? lineEnd : '');
        const pieces = splitAtLinks(render(({ plain }) => plain));
        expect(pieces.join(`?${parameter}`)).toBe(render(({ joined }) => joined(parameter)));
      }),
      { numRuns: 1000 },
    );
  });

  it('puts it first on a link that is a query alone', () => {
    expect(splitAtLinks('?a=1\n#x\n')).toEqual(['', '&a=1\n#x\n']);
  });

  it('leaves text without links in one piece', () => {
    expect(splitAtLinks('')).toEqual(['']);
    expect(splitAtLinks('#EXTM3U\n#EXT-X-ENDLIST\n')).toEqual(['#EXTM3U\n#EXT-X-ENDLIST\n']);
  });

  it('takes any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const pieces = splitAtLinks(text);
        // Every character is kept; only a `?` that became `&` differs.
        expect(pieces.join('').length).toBe(text.length);
      }),
    );
  });
});

describe('splitVttAtPictures', () => {
  it('takes lines that are a picture’s name, the last one too, and nothing that ends in one', () => {
    expect(splitVttAtPictures('a.jpg\nb.jpg')).toEqual(['a.jpg', '\nb.jpg', '']);
    for (const line of [' a.jpg', 'x/a.jpg', 'see a.jpg', 'a.jpgx', 'a.jpg x', 'a.png']) {
      expect(splitVttAtPictures(`${line}\n`)).toEqual([`${line}\n`]);
    }
  });

  it('cuts each cue line that names a picture before its fragment', () => {
    const vtt = [
      'WEBVTT',
      '',
      'NOTE storyboard-0.jpg is the first',
      '',
      '00:00.000 --> 00:05.000',
      'storyboard-0.jpg#xywh=0,0,160,90',
      '',
      '00:05.000 --> 00:10.000',
      'storyboard-1.jpg',
      '',
    ].join('\n');
    const joined = splitVttAtPictures(vtt).join('?token=T');
    expect(joined).toBe(
      vtt.replace('\nstoryboard-0.jpg#', '\nstoryboard-0.jpg?token=T#').replace('1.jpg\n', '1.jpg?token=T\n'),
    );
  });
});
