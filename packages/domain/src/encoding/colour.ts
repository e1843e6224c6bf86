import { type ProbedVideo } from './probe.ts';
import { type ManifestColour, type ManifestVideo, type PlanNote } from './types.ts';

type Colour = Pick<ManifestVideo, 'colour' | 'toneMap' | 'alpha'>;

/** Height from which untagged video is taken for BT.709, as players do. */
const highDefinition = 720;
const isRgb = (pixelFormat: string): boolean => /rgb|bgr|gbr|pal8|^mono/.test(pixelFormat);

/** How the source's pictures are to be read; all outputs are SDR BT.709 in limited range. */
export function planColour(video: ProbedVideo): Colour {
  const format = video.pixelFormat ?? '';
  const rgb = isRgb(format);
  const fallback = video.height >= highDefinition ? 'bt709' : 'smpte170m';
  const full = rgb || video.colour.range === 'pc' || format.startsWith('yuvj');
  const transfer = video.colour.transfer ?? 'bt709';
  return {
    colour: {
      matrix: rgb ? 'gbr' : (video.colour.matrix ?? fallback),
      primaries: video.colour.primaries ?? 'bt709',
      transfer,
      range: full ? 'pc' : 'tv',
    },
    toneMap: transfer === 'arib-std-b67' ? 'hlg' : transfer === 'smpte2084' ? 'pq' : 'none',
    alpha: video.alpha,
  };
}

const widePrimaries = new Set(['bt2020', 'smpte431', 'smpte432']);
/** Matrices that the fast scaler does not know. */
const oddMatrices = new Set(['ycgco', 'bt2020c', 'ictcp', 'chroma-derived-nc', 'chroma-derived-c']);

/** True when colours must go through the exact, slow converter. */
export const isWideGamut = (colour: ManifestColour): boolean =>
  widePrimaries.has(colour.primaries) || oddMatrices.has(colour.matrix);

/** What the ingest report says about colour, depth and alpha. */
export function colourNotes(video: ProbedVideo, plan: Colour): PlanNote[] {
  const notes: PlanNote[] = [];
  if (plan.toneMap !== 'none') {
    const name = plan.toneMap === 'hlg' ? 'HLG' : 'PQ';
    notes.push({
      code: 'tone_mapped',
      text: `${name} HDR was tone-mapped to SDR BT.709, which every player shows.`,
    });
  }
  if (plan.alpha) {
    notes.push({
      code: 'alpha_flattened',
      text: 'The transparent picture was laid over black; H.264 has no alpha.',
    });
  }
  if (plan.toneMap === 'none' && (plan.colour.matrix !== 'bt709' || plan.colour.range === 'pc')) {
    const text = `Colours were converted from ${plan.colour.matrix} (${plan.colour.range}) to BT.709 in limited range.`;
    notes.push({ code: 'colour_converted', text });
  }
  const format = video.pixelFormat ?? 'unknown';
  if (!/^yuvj?420p$/.test(format)) {
    notes.push({ code: 'pixels_converted', text: `Pixels were converted from ${format} to 8-bit 4:2:0.` });
  }
  return notes;
}
