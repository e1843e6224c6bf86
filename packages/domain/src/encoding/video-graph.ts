import { isWideGamut } from './colour.ts';
import { formatRational } from './rational.ts';
import { type EncodeManifest, type ManifestVideo } from './types.ts';

interface Size {
  width: number;
  height: number;
}

/** Formats that padding and forcing back work on without a detour. */
const plainFormat = /^(yuvj?|yuva)4[24][024]p|^gbrp|^gray/;

/**
 * Brings each decoded picture to the first one's size and format, so that nothing after it sees a change in
 * mid-stream (ffmpeg would rebuild the graph and lose its place on the time line). A no-op when all are alike.
 */
function steady({ width, height, pixelFormat, deinterlace }: ManifestVideo): string[] {
  const interlaced = deinterlace === 'none' ? '' : ':interl=-1';
  const scale = `scale=w=${width}:h=${height}:flags=bicubic${interlaced}`;
  // Padding works in whole chroma samples, so that an odd size cannot be padded to.
  const odd = width % 2 === 1 || height % 2 === 1;
  if (odd || pixelFormat === null || !plainFormat.test(pixelFormat)) return [scale];
  return [
    `${scale}:force_original_aspect_ratio=decrease`,
    `pad=w=${width}:h=${height}:x=-1:y=-1:eval=frame`,
    `format=${pixelFormat}`,
  ];
}

/** One frame per frame: `interlaced` leaves alone what the decoder marks progressive. */
const deinterlaced = ({ deinterlace }: ManifestVideo): string[] =>
  deinterlace === 'none' ? [] : [`bwdif=mode=send_frame:parity=${deinterlace}:deint=interlaced`];

/** What the fast scaler calls a matrix. */
const scalerMatrix = (matrix: string): string =>
  ({ bt709: 'bt709', fcc: 'fcc', smpte240m: 'smpte240m', bt2020nc: 'bt2020', bt2020c: 'bt2020' })[matrix] ??
  'bt601';

/** Scales to `size` (before rotation) and to SDR BT.709, limited range. */
function coloured(video: ManifestVideo, { width, height }: Size): string[] {
  const { colour, toneMap } = video;
  if (toneMap === 'none' && !isWideGamut(colour)) {
    const input = colour.matrix === 'gbr' ? '' : `in_color_matrix=${scalerMatrix(colour.matrix)}:`;
    const range = `in_range=${colour.range}:out_range=tv`;
    return [`scale=w=${width}:h=${height}:flags=bicubic:${input}out_color_matrix=bt709:${range}`];
  }
  const input = `tin=${colour.transfer}:min=${colour.matrix}:pin=${colour.primaries}:rin=${colour.range}`;
  if (toneMap === 'none') return [`zscale=w=${width}:h=${height}:${input}:t=bt709:m=bt709:p=bt709:r=tv`];
  return [
    // 203 cd/m² is diffuse white in HDR (ITU-R BT.2408).
    `zscale=w=${width}:h=${height}:${input}:t=linear:npl=203`,
    'format=gbrpf32le',
    'zscale=p=bt709',
    'tonemap=tonemap=mobius:desat=0',
    'zscale=t=bt709:m=bt709:r=tv',
  ];
}

/** Multiplying by alpha is laying over black. */
const flattened = ({ alpha }: ManifestVideo): string[] =>
  alpha ? ['format=yuva444p', 'premultiply=inplace=1'] : [];

function turned({ rotation, mirrored }: ManifestVideo): string[] {
  const turn = { 0: [], 90: ['transpose=clock'], 180: ['hflip', 'vflip'], 270: ['transpose=cclock'] };
  return [...(mirrored ? ['hflip'] : []), ...turn[rotation]];
}

/** Decoded pictures to upright 8-bit 4:2:0 BT.709 of `size`, square pixels. `onGrid` is put where it is cheapest. */
export function pictureFilters(video: ManifestVideo, size: Size, onGrid: readonly string[]): string[] {
  const sideways = video.rotation === 90 || video.rotation === 270;
  const lying = sideways ? { width: size.height, height: size.width } : size;
  return [
    ...steady(video),
    ...deinterlaced(video),
    ...onGrid,
    ...coloured(video, lying),
    ...flattened(video),
    'format=yuv420p',
    ...turned(video),
    'setsar=1',
  ];
}

/**
 * The picture that the grid has at one frame. Where reading began later than that, as in a source whose index
 * misleads, none comes out; only what was read `fromStart` may stand in for what should have come before it.
 */
export const frameFilters = (
  manifest: EncodeManifest,
  frame: number,
  { fromStart }: { fromStart: boolean },
): string[] => [
  // The very end, where a video may end sooner than planned, shows the last picture.
  ...onGrid(manifest, { fromStart, heldFrames: manifest.heldFrames + 1 }),
  // In the grid's own time base the time of a frame is its number.
  `trim=start_pts=${frame}:end_pts=${frame + 1}`,
];

/** Puts pictures on the grid: frame n at n / rate from presentation zero, then keeps a chunk's frames. */
export function gridFilters(
  manifest: EncodeManifest,
  chunk: { firstFrame: number; frames: number },
): string[] {
  const end = chunk.firstFrame + chunk.frames;
  return [
    ...onGrid(manifest, { fromStart: true, heldFrames: manifest.heldFrames }),
    `trim=start_frame=${chunk.firstFrame}:end_frame=${end}`,
  ];
}

const onGrid = (
  manifest: EncodeManifest,
  { fromStart, heldFrames }: { fromStart: boolean; heldFrames: number },
): string[] => [
  `setpts=PTS-(${manifest.zeroSeconds})/TB`,
  `fps=fps=${formatRational(manifest.frameRate)}:${fromStart ? 'start_time=0:' : ''}round=near`,
  // No more is held than planned: what does not decode at the end is missing, and measured as such.
  ...(heldFrames > 0 ? [`tpad=stop_mode=clone:stop=${heldFrames}`] : []),
];
