import { describe, expect, it } from '@jest/globals';
import { manifestVideoOf } from './testing/samples.ts';
import { type EncodeManifest, type ManifestColour, type ManifestVideo } from './types.ts';
import { frameFilters, gridFilters, pictureFilters } from './video-graph.ts';

const size = { width: 1280, height: 720 };
const filtersOf = (more: Partial<ManifestVideo> = {}, onGrid: string[] = []): string[] =>
  pictureFilters(manifestVideoOf(more), size, onGrid);
const colour = (more: Partial<ManifestColour>): Partial<ManifestVideo> => ({
  colour: { matrix: 'bt709', primaries: 'bt709', transfer: 'bt709', range: 'tv', ...more },
});

const steady = [
  'scale=w=1920:h=1080:flags=bicubic:force_original_aspect_ratio=decrease',
  'pad=w=1920:h=1080:x=-1:y=-1:eval=frame',
  'format=yuv420p',
];
const scaled =
  'scale=w=1280:h=720:flags=bicubic:in_color_matrix=bt709:out_color_matrix=bt709:in_range=tv:out_range=tv';
const end = ['format=yuv420p', 'setsar=1'];

describe('the filters of a picture', () => {
  it('hold it to its first size, scale it and make it 4:2:0', () => {
    expect(filtersOf({}, ['grid'])).toEqual([...steady, 'grid', scaled, ...end]);
  });

  it.each<[string, Partial<ManifestVideo>]>([
    ['an odd width', { width: 1919 }],
    ['an odd height', { height: 1079 }],
    ['an unknown format', { pixelFormat: null }],
    ['a format that cannot be padded', { pixelFormat: 'pal8' }],
    ['a format with a plain one in its name', { pixelFormat: 'xyuv420p' }],
    ['another with RGB in it', { pixelFormat: 'xgbrp' }],
    ['another with grey in it', { pixelFormat: 'xgray' }],
  ])('pad nothing of %s', (_what, more) => {
    const { width, height } = manifestVideoOf(more);
    expect(filtersOf(more)).toEqual([`scale=w=${width}:h=${height}:flags=bicubic`, scaled, ...end]);
  });

  it.each(['yuv420p', 'yuvj422p', 'yuva444p10le', 'yuv440p', 'gbrp', 'gbrp10le', 'gray', 'gray16le'])(
    'pad %s as it is',
    (pixelFormat) => {
      expect(filtersOf({ pixelFormat }).slice(1, 3)).toEqual([steady[1], `format=${pixelFormat}`]);
    },
  );

  it.each(['tff', 'bff'] as const)('deinterlace by the field that comes first: %s', (deinterlace) => {
    expect(filtersOf({ deinterlace }, ['grid'])).toEqual([
      'scale=w=1920:h=1080:flags=bicubic:interl=-1:force_original_aspect_ratio=decrease',
      ...steady.slice(1),
      `bwdif=mode=send_frame:parity=${deinterlace}:deint=interlaced`,
      ...['grid', scaled, ...end],
    ]);
  });

  it.each([
    ['bt709', 'bt709'],
    ['fcc', 'fcc'],
    ['smpte240m', 'smpte240m'],
    ['bt2020nc', 'bt2020'],
    ['smpte170m', 'bt601'],
    ['bt470bg', 'bt601'],
  ])('convert from the matrix %s as %s', (matrix, name) => {
    expect(filtersOf(colour({ matrix, range: 'pc' }))[3]).toBe(
      `scale=w=1280:h=720:flags=bicubic:in_color_matrix=${name}:out_color_matrix=bt709:in_range=pc:out_range=tv`,
    );
  });

  it('convert RGB without a matrix', () => {
    expect(filtersOf(colour({ matrix: 'gbr', range: 'pc' }))[3]).toBe(
      'scale=w=1280:h=720:flags=bicubic:out_color_matrix=bt709:in_range=pc:out_range=tv',
    );
  });

  it.each([
    { primaries: 'bt2020' },
    { primaries: 'smpte431' },
    { primaries: 'smpte432' },
    { matrix: 'ycgco' },
    { matrix: 'bt2020c' },
    { matrix: 'ictcp' },
    { matrix: 'chroma-derived-nc' },
    { matrix: 'chroma-derived-c' },
  ])('convert exactly what the fast scaler cannot: %j', (more) => {
    const { matrix = 'bt709', primaries = 'bt709' } = more as Partial<ManifestColour>;
    expect(filtersOf(colour(more))).toEqual([
      ...steady,
      `zscale=w=1280:h=720:tin=bt709:min=${matrix}:pin=${primaries}:rin=tv:t=bt709:m=bt709:p=bt709:r=tv`,
      ...end,
    ]);
  });

  it('map the tones of HDR in linear light, with diffuse white at 203 cd/m²', () => {
    const hdr = colour({ matrix: 'bt2020nc', primaries: 'bt2020', transfer: 'smpte2084' });
    expect(filtersOf({ ...hdr, toneMap: 'pq' })).toEqual([
      ...steady,
      'zscale=w=1280:h=720:tin=smpte2084:min=bt2020nc:pin=bt2020:rin=tv:t=linear:npl=203',
      'format=gbrpf32le',
      'zscale=p=bt709',
      'tonemap=tonemap=mobius:desat=0',
      'zscale=t=bt709:m=bt709:r=tv',
      ...end,
    ]);
  });

  it('map the tones of HDR in common colours too', () => {
    expect(filtersOf({ ...colour({ transfer: 'arib-std-b67' }), toneMap: 'hlg' })[3]).toBe(
      'zscale=w=1280:h=720:tin=arib-std-b67:min=bt709:pin=bt709:rin=tv:t=linear:npl=203',
    );
  });

  it('lay alpha over black', () => {
    expect(filtersOf({ alpha: true })).toEqual([
      ...steady,
      ...[scaled, 'format=yuva444p', 'premultiply=inplace=1', ...end],
    ]);
  });

  it.each<[ManifestVideo['rotation'], boolean, string[], string]>([
    [0, false, [], 'w=1280:h=720'],
    [0, true, ['hflip'], 'w=1280:h=720'],
    [90, false, ['transpose=clock'], 'w=720:h=1280'],
    [180, false, ['hflip', 'vflip'], 'w=1280:h=720'],
    [270, false, ['transpose=cclock'], 'w=720:h=1280'],
    [270, true, ['hflip', 'transpose=cclock'], 'w=720:h=1280'],
  ])('turn it last, by %d° (mirrored: %s)', (rotation, mirrored, turn, lying) => {
    const filters = filtersOf({ rotation, mirrored });
    expect(filters.slice(4)).toEqual(['format=yuv420p', ...turn, 'setsar=1']);
    expect(filters[3]).toContain(`scale=${lying}:`);
  });
});

describe('the filters of the grid', () => {
  const manifest = {
    zeroSeconds: 1.5,
    frameRate: [30_000, 1001],
    heldFrames: 0,
  } as unknown as EncodeManifest;
  const put = ['setpts=PTS-(1.5)/TB', 'fps=fps=30000/1001:start_time=0:round=near'];

  it('count frames from presentation zero and keep those of the chunk', () => {
    expect(gridFilters(manifest, { firstFrame: 180, frames: 90 })).toEqual([
      ...put,
      'trim=start_frame=180:end_frame=270',
    ]);
  });

  it('hold the last picture for as long as planned', () => {
    expect(gridFilters({ ...manifest, heldFrames: 1 }, { firstFrame: 0, frames: 9 })).toEqual([
      ...put,
      ...['tpad=stop_mode=clone:stop=1', 'trim=start_frame=0:end_frame=9'],
    ]);
  });

  it('keep one frame by its number, which has none to stand in for it but at the start', () => {
    const kept = 'trim=start_pts=180:end_pts=181';
    const held = { ...manifest, heldFrames: 2 };
    expect(frameFilters(manifest, 180, { fromStart: true })).toEqual([
      ...[...put, 'tpad=stop_mode=clone:stop=1', kept],
    ]);
    expect(frameFilters(held, 180, { fromStart: false })).toEqual([
      ...['setpts=PTS-(1.5)/TB', 'fps=fps=30000/1001:round=near', 'tpad=stop_mode=clone:stop=3', kept],
    ]);
  });
});
