import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

const folder = new URL('../../../../packages/testing/media/', import.meta.url);

const size = z.strictObject({ w: z.number(), h: z.number() });
/** Heights, or `source` for one rendition of the source's own size; the other two rules are not this product's. */
const rungs = z
  .object({ fit_16x9_box: z.array(z.union([z.number(), z.literal('source')])) })
  .transform(({ fit_16x9_box }) => fit_16x9_box.map((rung) => (rung === 'source' ? '360p' : `${rung}p`)));

/** The picture at a fraction of its width and height, as displayed. */
const pixel = z.strictObject({
  at_s: z.number(),
  x: z.number(),
  y: z.number(),
  rgb: z.tuple([z.number(), z.number(), z.number()]),
  tol: z.number(),
});
export type Pixel = z.infer<typeof pixel>;

/** Strict: a key that no check looks at fails the suite. */
const ready = z.strictObject({
  outcome: z.literal('ready'),
  display: size,
  qualities: rungs,
  duration_s: z.union([z.number(), z.literal('ACTUAL')]),
  duration_tol_s: z.number(),
  has_audio: z.boolean(),
  /** Seconds that are to be heard, at least; ours, for sound that is loud without a pause. */
  sounding_s_min: z.number().optional(),
  pixels: z.array(pixel).default([]),
  sync: z.strictObject({ flash_s: z.number(), beep_s: z.number(), tol_ms: z.number() }).optional(),
  /** Both files that have it show a moving bar: woven fields leave combs of grey. */
  deinterlace: z.object({ kind: z.string(), check: z.string() }).optional(),
  output_colour: z.literal('sdr_bt709').optional(),
  fps_out_max: z.number().optional(),
  audio_channels_out_max: z.number().optional(),
  audio_rate_out_max: z.number().optional(),
  duration_positive: z.boolean().optional(),
  // Other answers that would be right; this product's is the first.
  duration_also: z.array(z.number()).optional(),
  display_also: size.optional(),
  qualities_also: rungs.optional(),
  note: z.string().optional(),
});
export type ReadyCase = z.infer<typeof ready>;

const failed = z.strictObject({
  outcome: z.literal('failed'),
  failure_kind: z.string(),
  failure_kind_also_fine: z.array(z.string()).optional(),
  permanent: z.literal(true),
  /** The traps in `media-hostile` watch for both. */
  no_connection_to: z.array(z.string()).optional(),
  no_host_file_content: z.boolean().optional(),
  setup: z.string().optional(),
});

const outcome = z.discriminatedUnion('outcome', [ready, failed]);
const expectation = z.union([
  outcome.transform((only) => [only]),
  z
    .strictObject({ one_of: z.array(outcome), never: z.string().optional() })
    .transform(({ one_of }) => one_of),
]);
const manifest = z.object({
  files: z.array(z.object({ file: z.string(), family: z.string(), why: z.string(), expect: expectation })),
});

export interface MediaCase {
  file: string;
  family: string;
  why: string;
  /** Any of them is right. */
  expect: z.infer<typeof outcome>[];
}

const { files } = manifest.parse(JSON.parse(readFileSync(new URL('manifest.json', folder), 'utf8')));

/** The cases of some families, in the manifest's order. */
export const casesOf = (families: readonly string[]): MediaCase[] =>
  files.filter(({ family }) => families.includes(family));

export const allFamilies: readonly string[] = [...new Set(files.map(({ family }) => family))];

/** Families by what they try; each test file takes some, and one of them checks that none is left out. */
export const familiesOf = {
  picture: ['ladder', 'rotation', 'dimensions', 'pixel-shape', 'pixel-format', 'mid-stream-change'],
  time: [
    ...['codec', 'audio-presence', 'audio-format', 'frame-rate', 'length', 'timeline'],
    ...['extra-streams', 'layout', 'declared-duration', 'names'],
  ],
  hostile: ['audio-only', 'damage', 'disguised'],
} as const;

export const mediaPath = (file: string): string => fileURLToPath(new URL(file, folder));

/** `failure.code` of each neutral kind (contract "Encoding"). */
export const codeOfKind: Readonly<Record<string, string>> = {
  empty: 'invalid_file',
  not_media: 'invalid_file',
  unreadable: 'invalid_file',
  corrupt: 'invalid_file',
  unsafe_reference: 'invalid_file',
  unsupported_dimensions: 'invalid_file',
  not_video: 'no_video_track',
  no_video: 'no_video_track',
  no_decodable_video: 'unsupported_codec',
  unsupported_audio: 'unsupported_codec',
  timeout: 'encoding_failed',
};
