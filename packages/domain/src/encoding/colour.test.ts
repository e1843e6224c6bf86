import { describe, expect, it } from '@jest/globals';
import { colourNotes, planColour } from './colour.ts';
import { type ProbedVideo } from './probe.ts';
import { videoOf } from './testing/samples.ts';

const untagged = { range: null, matrix: null, primaries: null, transfer: null };
const planOf = (more: Partial<ProbedVideo> = {}) => planColour(videoOf(more));
const notesOf = (more: Partial<ProbedVideo> = {}): string[][] =>
  colourNotes(videoOf(more), planOf(more)).map(({ code, text }) => [code, text]);

describe('the colours of a source', () => {
  it('are what its tags say', () => {
    const colour = { range: 'tv', matrix: 'fcc', primaries: 'film', transfer: 'gamma22' };
    expect(planOf({ colour, alpha: true })).toEqual({ colour, toneMap: 'none', alpha: true });
  });

  it.each([
    [719, 'smpte170m'],
    [720, 'bt709'],
  ])('without tags are taken by its height of %d for %s', (height, matrix) => {
    expect(planOf({ height, colour: untagged, pixelFormat: null }).colour).toEqual({
      ...{ matrix, primaries: 'bt709', transfer: 'bt709', range: 'tv' },
    });
  });

  it.each(['rgb24', 'bgra', 'gbrp10le', 'pal8', 'monow'])('of %s are RGB in full range', (pixelFormat) => {
    expect(planOf({ pixelFormat }).colour).toMatchObject({ matrix: 'gbr', range: 'pc' });
  });

  it.each([
    ['yuvj420p', 'tv', 'pc'],
    ['yuv420p', 'pc', 'pc'],
    ['yuv420p', 'tv', 'tv'],
    ['xmono', 'tv', 'tv'],
    ['xyuvj', 'tv', 'tv'],
  ])('of %s tagged %s have the range %s', (pixelFormat, range, expected) => {
    const { colour } = videoOf();
    expect(planOf({ pixelFormat, colour: { ...colour, range } }).colour.range).toBe(expected);
  });
});

describe('the report on colours', () => {
  const { colour } = videoOf();
  it.each<[string, Partial<ProbedVideo>, string[][]]>([
    ['says nothing of what needs nothing', {}, []],
    [
      'names PQ',
      { colour: { ...colour, transfer: 'smpte2084', matrix: 'bt2020nc' } },
      [['tone_mapped', 'PQ HDR was tone-mapped to SDR BT.709, which every player shows.']],
    ],
    [
      'names HLG',
      { colour: { ...colour, transfer: 'arib-std-b67' } },
      [['tone_mapped', 'HLG HDR was tone-mapped to SDR BT.709, which every player shows.']],
    ],
    [
      'tells of alpha, and of pixels',
      { alpha: true, pixelFormat: 'yuva420p' },
      [
        ['alpha_flattened', 'The transparent picture was laid over black; H.264 has no alpha.'],
        ['pixels_converted', 'Pixels were converted from yuva420p to 8-bit 4:2:0.'],
      ],
    ],
    [
      'tells of another matrix',
      { colour: { ...colour, matrix: 'smpte170m' } },
      [['colour_converted', 'Colours were converted from smpte170m (tv) to BT.709 in limited range.']],
    ],
    [
      'tells of another range',
      { colour: { ...colour, range: 'pc' } },
      [['colour_converted', 'Colours were converted from bt709 (pc) to BT.709 in limited range.']],
    ],
    [
      'tells of pixels whose name ends like plain ones',
      { pixelFormat: 'xyuv420p' },
      [['pixels_converted', 'Pixels were converted from xyuv420p to 8-bit 4:2:0.']],
    ],
    [
      'tells of unknown pixels',
      { pixelFormat: null },
      [['pixels_converted', 'Pixels were converted from unknown to 8-bit 4:2:0.']],
    ],
    [
      'tells of deeper pixels',
      { pixelFormat: 'yuv420p10le' },
      [['pixels_converted', 'Pixels were converted from yuv420p10le to 8-bit 4:2:0.']],
    ],
    [
      'takes full-range pixels for plain ones',
      { pixelFormat: 'yuvj420p' },
      [['colour_converted', 'Colours were converted from bt709 (pc) to BT.709 in limited range.']],
    ],
  ])('%s', (_what, more, notes) => {
    expect(notesOf(more)).toEqual(notes);
  });
});
