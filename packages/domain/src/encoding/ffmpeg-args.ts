import { aacFrame } from './audio-plan.ts';
import { hashEdges, seekArgs } from './chunk-args.ts';
import { inputArgs } from './probe-args.ts';
import { toNumber } from './rational.ts';
import {
  type EncodeManifest,
  type ManifestAudioTrack,
  type ManifestChunk,
  type ManifestRendition,
  type TaskCommand,
  type TaskOutput,
} from './types.ts';
import { frameFilters, gridFilters, pictureFilters } from './video-graph.ts';

export interface TaskOptions {
  /** The loopback block reader's URL of the source. */
  inputUrl: string;
  /** Existing folder for the outputs, without a slash at its end. */
  outputDir: string;
  /** Threads for decoding, filtering and each encoder: the CPUs that the task may use. */
  threads: number;
  /** libx264's; `veryfast` unless configured. */
  preset?: string;
}

const quiet = ['-hide_banner', '-nostdin', '-nostats', '-v', 'error', '-progress', 'pipe:1', '-y'];
const anonymous = [
  ...['-map_metadata', '-1', '-map_chapters', '-1', '-fflags', '+bitexact'],
  ...['-flags:v', '+bitexact', '-flags:a', '+bitexact'],
];
/** One init segment for all chunks and absolute `tfdt`s, which ffmpeg's HLS muxer does not give. */
const fragments = (flags: string): string[] => [
  ...['-movflags', `+empty_moov${flags}+default_base_moof+negative_cts_offsets+frag_discont`],
  ...['-use_editlist', '0', '-avoid_negative_ts', 'disabled', '-f', 'mp4'],
];

/**
 * Before the input. Timestamps are taken as they are, and put on presentation zero by the filters; only a
 * jumping clock is left to ffmpeg to straighten.
 */
const timeArgs = (manifest: EncodeManifest): string[] => (manifest.discontinuous ? [] : ['-copyts']);

/** Later than any video ends. */
const secondsBehind = 1_000_000;

/**
 * So that sound and picture tasks straighten a jumping clock alike, each reads the other's packets too. Their copy
 * is stamped behind all else: ffmpeg (5.1) reads on for the output that is furthest behind, and would make all
 * pictures that fill a gap of the other at once, in memory.
 */
const companionArgs = (manifest: EncodeManifest): string[] =>
  manifest.discontinuous
    ? [
        ...[manifest.video.stream, ...manifest.audio.map((a) => a.stream)].flatMap((s) => ['-map', `0:${s}`]),
        ...['-c', 'copy', '-bsf', `setts=ts=TS+${secondsBehind}/TB`, '-f', 'null', '-'],
      ]
    : [];

const pictureInput = ({ video }: EncodeManifest, { inputUrl, threads }: TaskOptions): string[] => [
  ...['-noautorotate', '-reinit_filter', '0', '-threads', String(threads)],
  ...(video.decoder === null ? [] : [`-c:${video.stream}`, video.decoder]),
  ...inputArgs(inputUrl),
];

/**
 * The filters turn the pictures, after deinterlacing. But outputs of a graph with one input inherit that input's
 * display matrix, by which players would turn them again (ffmpeg 5.1); outputs of a graph with two do not. So a
 * turned source is opened once more, for its first picture.
 */
function secondInput(manifest: EncodeManifest, options: TaskOptions): { args: string[]; graph: string } {
  const { rotation, mirrored, stream } = manifest.video;
  if (rotation === 0 && !mirrored) return { args: [], graph: '' };
  return { args: ['-t', '0.001', ...pictureInput(manifest, options)], graph: `[1:${stream}]nullsink;` };
}

/**
 * One chunk of the video in all renditions: decoded once, filtered once to the largest, scaled down from
 * that. Writes `video-{chunk}-{quality}.mp4`, one fragment per segment, and `edgesFile` when there are others.
 * @throws RangeError when the manifest has no such chunk.
 */
export function videoTaskArgs(
  manifest: EncodeManifest,
  chunkIndex: number,
  options: TaskOptions,
): TaskCommand {
  const chunk = manifest.chunks[chunkIndex];
  if (chunk === undefined) throw new RangeError(`no chunk ${chunkIndex}`);
  const outputs = manifest.renditions.map((r, index): TaskOutput => ({
    file: `video-${chunkIndex}-${r.quality}.mp4`,
    kind: 'rendition',
    index,
  }));
  const second = secondInput(manifest, options);
  const edgesFile = manifest.chunks.length > 1 ? `edges-${chunkIndex}.txt` : undefined;
  const edges =
    edgesFile === undefined
      ? { reach: chunk, graph: '', args: [] }
      : hashEdges(chunk, `${options.outputDir}/${edgesFile}`);
  const args = [
    ...quiet,
    ...timeArgs(manifest),
    ...['-filter_complex_threads', String(options.threads)],
    ...seekArgs(manifest, chunk),
    ...pictureInput(manifest, options),
    ...second.args,
    ...['-filter_complex', second.graph + videoGraph(manifest, edges)],
    ...manifest.renditions.flatMap((rendition, i) => [
      ...['-map', `[v${i}]`],
      ...x264Args(manifest, rendition, options),
      `${options.outputDir}/${outputs[i]?.file ?? ''}`,
    ]),
    ...edges.args,
    ...companionArgs(manifest),
  ];
  return { args, outputs, frames: chunk.frames, ...(edgesFile === undefined ? {} : { edgesFile }) };
}

function videoGraph(
  manifest: EncodeManifest,
  { reach, graph }: { reach: ManifestChunk; graph: string },
): string {
  const largest = manifest.renditions.at(-1);
  const smaller = manifest.renditions.slice(0, -1);
  if (largest === undefined) throw new RangeError('a manifest has at least one rendition');
  const head = pictureFilters(manifest.video, largest, gridFilters(manifest, reach)).join(',') + graph;
  const last = `[v${smaller.length}]`;
  const input = `[0:${manifest.video.stream}]`;
  if (smaller.length === 0) return `${input}${head}${last}`;
  const split = `split=${smaller.length + 1}${smaller.map((_, i) => `[s${i}]`).join('')}${last}`;
  const scaled = smaller.map(
    (r, i) => `[s${i}]scale=w=${r.width}:h=${r.height}:flags=bicubic,setsar=1[v${i}]`,
  );
  return [`${input}${head},${split}`, ...scaled].join(';');
}

/** Reordering shows a picture late in ffmpeg's own players, by one frame here; slow rates do without. */
const reorderFrom = 20;

function x264Args(manifest: EncodeManifest, rendition: ManifestRendition, options: TaskOptions): string[] {
  const gop = String(manifest.segmentFrames);
  return [
    ...['-c:v', 'libx264', '-preset', options.preset ?? 'veryfast', '-threads', String(options.threads)],
    ...['-profile:v', 'high', '-level:v', (rendition.level / 10).toFixed(1), '-pix_fmt', 'yuv420p'],
    ...['-crf', String(rendition.crf)],
    ...['-maxrate', String(rendition.maxrate), '-bufsize', String(rendition.bufsize)],
    // Key frames by frame number alone, so that all renditions and chunks have the same edges.
    ...['-g', gop, '-keyint_min', gop, '-sc_threshold', '0'],
    ...(toNumber(manifest.frameRate) < reorderFrom ? ['-bf', '0'] : ['-x264-params', 'b-pyramid=none']),
    ...['-colorspace', 'bt709', '-color_primaries', 'bt709', '-color_trc', 'bt709', '-color_range', 'tv'],
    ...['-fps_mode', 'passthrough'],
    ...anonymous,
    ...['-flags:v', '+bitexact+cgop'],
    ...fragments('+frag_keyframe'),
  ];
}

/** The copy of a sound track in the output folder, in ffmpeg's raw AMR format. */
const soundCopyFile = (trackIndex: number): string => `sound-${trackIndex}.amr`;

/**
 * The command to run before `audioTaskArgs`, or null when there is none: AMR frames lie several to a packet, and
 * only the raw format's demuxer hands them to the decoder one by one. Its frames follow each other without gaps,
 * as they do in what cameras write.
 */
export function soundCopyArgs(
  manifest: EncodeManifest,
  trackIndex: number,
  options: TaskOptions,
): TaskCommand | null {
  const track = manifest.audio[trackIndex];
  if (track === undefined || track.copiedFromSeconds === null) return null;
  const file = soundCopyFile(trackIndex);
  const args = [
    ...[...quiet, ...inputArgs(options.inputUrl), '-map', `0:${track.stream}`],
    ...['-c', 'copy', '-f', 'amr', `${options.outputDir}/${file}`],
  ];
  return { args, outputs: [{ file, kind: 'audio', index: trackIndex }], frames: null };
}

/** What a sound track is read from, its name in the filter graph, and where that source's own zero lies. */
function soundInput(
  manifest: EncodeManifest,
  { trackIndex, options }: { trackIndex: number; options: TaskOptions },
): { args: string[]; pad: string; zeroSeconds: number } {
  const { stream = 0, copiedFromSeconds = null } = manifest.audio[trackIndex] ?? {};
  if (copiedFromSeconds === null) {
    return { args: inputArgs(options.inputUrl), pad: `[0:${stream}]`, zeroSeconds: manifest.zeroSeconds };
  }
  const copy = `${options.outputDir}/${soundCopyFile(trackIndex)}`;
  const args = ['-protocol_whitelist', 'file', '-f', 'amr', '-i', copy];
  return { args, pad: '[0:0]', zeroSeconds: manifest.zeroSeconds - copiedFromSeconds };
}

/**
 * One sound track, whole: AAC-LC from presentation zero to the end of what plays. Late sound gets silence
 * before it, gaps are filled, what lies before zero is cut. Writes `audio-{track}.mp4`. What `soundCopyArgs`
 * gives must have been run.
 * @throws RangeError when the manifest has no such track.
 */
export function audioTaskArgs(
  manifest: EncodeManifest,
  trackIndex: number,
  options: TaskOptions,
): TaskCommand {
  const track = manifest.audio[trackIndex];
  if (track === undefined) throw new RangeError(`no audio track ${trackIndex}`);
  const output: TaskOutput = { file: `audio-${trackIndex}.mp4`, kind: 'audio', index: trackIndex };
  // Half a frame early, so that rounding does not decide which frame begins a segment.
  const fragmentUs = Math.round(((track.segmentFrames - 0.5) * aacFrame * 1e6) / track.sampleRate);
  const input = soundInput(manifest, { trackIndex, options });
  const args = [
    ...quiet,
    ...timeArgs(manifest),
    ...input.args,
    ...['-filter_complex', `${input.pad}${soundFilters(track, input.zeroSeconds).join(',')}[a]`],
    ...['-map', '[a]', '-c:a', 'aac', '-b:a', String(track.bitrate)],
    ...anonymous,
    ...['-frag_duration', String(fragmentUs)],
    ...fragments(''),
    `${options.outputDir}/${output.file}`,
    ...(track.copiedFromSeconds === null ? companionArgs(manifest) : []),
  ];
  return { args, outputs: [output], frames: null };
}

/**
 * The encoder puts out its own start-up frame first. It takes the place of the first 21 ms, so that all
 * later sound is exactly in time without an edit list.
 */
function soundFilters(track: ManifestAudioTrack, zeroSeconds: number): string[] {
  const layout = track.channels === 1 ? 'mono' : 'stereo';
  return [
    ...mixable(track),
    `asetpts=PTS-(${zeroSeconds})/TB`,
    `aresample=${track.sampleRate}:async=1:first_pts=0:ochl=${layout}`,
    `aformat=sample_fmts=fltp:sample_rates=${track.sampleRate}:channel_layouts=${layout}`,
    'apad',
    `atrim=start_pts=${aacFrame}:end_pts=${track.frames * aacFrame}`,
  ];
}

/** Without a layout the mixer does not know which channels are left and right: the first two are taken. */
const mixable = (track: ManifestAudioTrack): string[] =>
  track.sourceLayout === null && track.sourceChannels > 2 ? ['pan=stereo|c0=c0|c1=c1'] : [];

/** Seconds of video among which a poster is chosen, and that are read before a moment. */
const posterWindow = 3;

export interface PosterPlace {
  /** From presentation zero. */
  readonly atSeconds: number;
  /** Exactly what is shown then (contract VID-208); else the best picture of the seconds from there. */
  readonly exact: boolean;
  /** How long before the moment reading begins, in seconds; the key frame before that should be found. 3 unless told. */
  readonly reachSeconds?: number;
}

/**
 * The poster: of some seconds the picture most like the others (so not a black one, nor a blend), or the one that the
 * encode shows at a moment. Writes `poster.jpg`, displayed shape; nothing when the place gives no picture.
 */
export function imagesTaskArgs(
  manifest: EncodeManifest,
  options: TaskOptions,
  place: PosterPlace = { atSeconds: manifest.images.poster.atSeconds, exact: false },
): TaskCommand {
  const { poster } = manifest.images;
  const output: TaskOutput = { file: 'poster.jpg', kind: 'poster', index: 0 };
  const spaced = "select='isnan(prev_selected_t)+gte(t-prev_selected_t,0.25)'";
  const moment = place.exact ? momentArgs(manifest, place) : null;
  const graph = [
    ...pictureFilters(manifest.video, poster, moment?.onGrid ?? [spaced]),
    ...(moment === null ? ['thumbnail=n=12'] : []),
    // JPEG is full range BT.601 by definition (JFIF).
    'scale=in_color_matrix=bt709:out_color_matrix=bt601:in_range=tv:out_range=pc,format=yuvj420p',
  ].join(',');
  const args = [
    ...quiet,
    ...(moment?.before ?? windowArgs(place)),
    ...pictureInput(manifest, options),
    ...['-filter_complex', `[0:${manifest.video.stream}]${graph}[p]`, '-map', '[p]', '-frames:v', '1'],
    ...(moment === null ? [] : ['-fps_mode', 'passthrough']),
    ...['-c:v', 'mjpeg', '-q:v', '4', '-threads', '1'],
    ...anonymous,
    ...['-update', '1', '-f', 'image2', `${options.outputDir}/${output.file}`],
    ...(moment === null ? [] : companionArgs(manifest)),
  ];
  return { args, outputs: [output], frames: null };
}

const windowArgs = ({ atSeconds }: PosterPlace): string[] => [
  ...(atSeconds > 0 ? ['-ss', atSeconds.toFixed(3)] : []),
  ...['-t', String(posterWindow)],
];

/** Reads as the encode does, and keeps the frame of its grid that is shown then. A jumping clock cannot be sought in. */
function momentArgs(
  manifest: EncodeManifest,
  { atSeconds, reachSeconds = posterWindow }: PosterPlace,
): { before: string[]; onGrid: string[] } {
  const rate = toNumber(manifest.frameRate);
  // Rounding must not show the frame before the one that begins at this very moment.
  const frame = Math.min(Math.floor(atSeconds * rate + 1e-6), manifest.frames - 1);
  const leadSeconds = manifest.discontinuous ? Infinity : reachSeconds;
  const seek =
    frame / rate > leadSeconds ? seekArgs(manifest, { firstFrame: frame, frames: 1 }, leadSeconds) : [];
  return {
    before: [...timeArgs(manifest), ...seek],
    onGrid: frameFilters(manifest, frame, { fromStart: seek.length === 0 }),
  };
}
