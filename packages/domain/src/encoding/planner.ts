import { type Quality } from '@millrace/contract';
import { chooseAudio, endSeconds, planTrack, startSeconds, trackNames } from './audio-plan.ts';
import { chooseVideo } from './classify.ts';
import { colourNotes, planColour } from './colour.ts';
import { frameGrid, type FrameGrid } from './frame-grid.ts';
import { ladder, withRateControl } from './ladder.ts';
import { type ProbedAudio, type ProbedVideo, type SourceProbe } from './probe.ts';
import { formatRational, toNumber } from './rational.ts';
import { type EncodeManifest, type ManifestVideo, type PlanNote, type SourceFailure } from './types.ts';
import { planChunks, planTasks } from './work-plan.ts';

export interface PlanOptions {
  /** The account's plan; higher qualities are not made. */
  maxQuality: Quality;
  /** Aim of a segment's length; 6 unless a test wants another. */
  segmentSeconds?: number;
  /** Aim of a video task's length, in seconds of the video; null, the default, is the whole video. */
  chunkSeconds?: number | null;
}

/** Raised whenever the same probe would give another manifest. */
const plannerVersion = 'millrace-2';
/** Sound that ends later than the picture by more is played on, over the last picture. */
const heldFrom = 0.2;

/** Sound that begins earlier than the picture by more is played, over the first picture; else it is cut. */
const leadKept = (container: string): number =>
  // Cut broadcasts send sound before the first key frame; in MP4 and Matroska such a lead is meant.
  container === 'mp4' || container === 'matroska' ? 0.25 : 1;

/**
 * Plans the encode of a source: renditions, frame grid, colour, sound, tasks. Pure: the same probe and
 * options give the same manifest. Returns the failure when the source holds nothing to encode.
 */
export function planEncode(
  probe: SourceProbe,
  options: PlanOptions,
): { ok: true; manifest: EncodeManifest } | SourceFailure {
  const video = chooseVideo(probe);
  if ('ok' in video) return video;
  const { chosen, notes: audioNotes } = chooseAudio(probe.audio);
  const timeline = planTimeline(probe, video, chosen);
  const picture = planPicture(video);
  const display = { width: picture.displayWidth, height: picture.displayHeight };
  const segmentSeconds = options.segmentSeconds ?? 6;
  const { rate } = timeline.grid;
  const durationSeconds = timeline.frames / toNumber(rate);
  const grid = {
    frameRate: [rate[0], rate[1]] as [number, number],
    frames: timeline.frames,
    segmentFrames: Math.max(1, Math.round(segmentSeconds * toNumber(rate))),
  };
  const names = trackNames(chosen);
  const manifest: Omit<EncodeManifest, 'tasks'> = {
    v: 1,
    planner: plannerVersion,
    container: probe.container,
    video: picture,
    zeroSeconds: timeline.zeroSeconds,
    discontinuous: probe.discontinuous,
    ...grid,
    heldFrames: timeline.heldFrames,
    durationSeconds,
    renditions: ladder(display, options.maxQuality).map((rung) => withRateControl(rung, rate)),
    audio: chosen.map((track, i) =>
      planTrack(track, names[i] ?? 'Audio', soundSeconds(track, timeline, durationSeconds), segmentSeconds),
    ),
    chunks: planChunks(probe, video, { ...grid, chunkSeconds: options.chunkSeconds ?? null }),
    images: { poster: planPoster(display, durationSeconds) },
    notes: [...pictureNotes(video, picture, probe), ...timelineNotes(timeline), ...audioNotes],
  };
  return { ok: true, manifest: { ...manifest, tasks: planTasks(manifest) } };
}

interface Timeline {
  grid: FrameGrid;
  /** By ffmpeg's clock in the tasks, which is not the packets' own when that jumps. */
  zeroSeconds: number;
  /** By the packets' clock. */
  startSeconds: number;
  frames: number;
  heldFrames: number;
  /** Of the first picture, after presentation zero. */
  leadSeconds: number;
}

function planTimeline(probe: SourceProbe, video: ProbedVideo, audio: readonly ProbedAudio[]): Timeline {
  const tick = toNumber(video.timeBase);
  const firstTick = firstShown(video);
  const ticks = video.times.ticks.filter((t) => t >= firstTick);
  const grid = frameGrid(video, ticks, video.times.lastDuration);
  const rate = toNumber(grid.rate);
  const pictureStart = firstTick * tick;
  const pictureEnd =
    video.times.lastDuration > 0
      ? video.times.endTick * tick
      : video.times.endTick * tick + 1 / toNumber(grid.sourceRate);
  const soundStart = Math.min(...audio.map(startSeconds), Infinity);
  const soundEnd = Math.max(...audio.map(endSeconds), -Infinity);
  const lead = pictureStart - soundStart > leadKept(probe.container) ? pictureStart - soundStart : 0;
  const start = pictureStart - lead;
  const pictureFrames = Math.max(1, Math.round((pictureEnd - start) * rate));
  const held = soundEnd - pictureEnd > Math.max(heldFrom, 1 / rate);
  const frames = held ? Math.max(pictureFrames, Math.ceil((soundEnd - start) * rate - 0.01)) : pictureFrames;
  // ffmpeg counts a jumping clock from the earliest start of the streams that it reads.
  const origin = probe.discontinuous ? Math.min(...[video, ...audio].map((s) => s.startSeconds)) : 0;
  return {
    grid,
    zeroSeconds: start - origin,
    startSeconds: start,
    frames,
    heldFrames: frames - pictureFrames,
    leadSeconds: lead,
  };
}

/**
 * Pictures that the decoder drops at the start, for want of a reference before the first key frame, do not
 * play. A single one is no proof: decoders also date the first picture a frame late.
 */
function firstShown({ times, firstTick }: ProbedVideo): number {
  const decoded = firstTick ?? times.firstTick;
  return decoded <= (times.ticks[1] ?? times.firstTick) ? times.firstTick : decoded;
}

/** Silence fills up to the picture's end; sound that runs a little over it is kept. */
function soundSeconds(track: ProbedAudio, timeline: Timeline, durationSeconds: number): number {
  const own = Math.min(endSeconds(track) - timeline.startSeconds, durationSeconds + heldFrom);
  return Math.max(durationSeconds, own);
}

function planPicture(video: ProbedVideo): ManifestVideo {
  const { rotation, mirrored } = orientation(video.matrix);
  const shown = { width: Math.max(1, Math.round(video.width * video.pixelAspect)), height: video.height };
  const turned = rotation === 90 || rotation === 270;
  return {
    stream: video.index,
    codec: video.codec ?? '',
    decoder: alphaDecoder(video),
    width: video.width,
    height: video.height,
    pixelFormat: alphaDecoder(video) === null ? video.pixelFormat : 'yuva420p',
    rotation,
    mirrored,
    displayWidth: turned ? shown.height : shown.width,
    displayHeight: turned ? shown.width : shown.height,
    ...planColour(video),
    deinterlace: fieldOrder(video),
  };
}

/** The built-in decoders of VP8 and VP9 leave the alpha layer out. */
function alphaDecoder(video: ProbedVideo): string | null {
  if (!video.alpha) return null;
  return video.codec === 'vp9' ? 'libvpx-vp9' : video.codec === 'vp8' ? 'libvpx' : null;
}

/** The quarter turn nearest to a display matrix; a negative determinant mirrors (ISO 14496-12 §6.2.2). */
function orientation(matrix: ProbedVideo['matrix']): Pick<ManifestVideo, 'rotation' | 'mirrored'> {
  if (matrix === null) return { rotation: 0, mirrored: false };
  const [a, b, c, d] = matrix;
  const mirrored = a * d - b * c < 0;
  const sign = mirrored ? -1 : 1;
  const quarter = Math.round(Math.atan2(b * sign, a * sign) / (Math.PI / 2));
  return { rotation: ([0, 90, 180, 270] as const)[(quarter + 4) % 4] ?? 0, mirrored };
}

/**
 * Which field comes first, or none. Frames say whether they are interlaced; the container or parser knows
 * the order better than the decoder's flag (MBAFF files are flagged bottom first for top first).
 */
function fieldOrder(video: ProbedVideo): ManifestVideo['deinterlace'] {
  const { interlaced, topFirst } = video.sample;
  if (interlaced === 0) return 'none';
  if (video.fieldOrder === 'tt' || video.fieldOrder === 'bt') return 'tff';
  if (video.fieldOrder === 'bb' || video.fieldOrder === 'tb') return 'bff';
  return topFirst * 2 >= interlaced ? 'tff' : 'bff';
}

const posterSide = 1280;

function planPoster(
  { width, height }: { width: number; height: number },
  durationSeconds: number,
): EncodeManifest['images']['poster'] {
  const scale = Math.min(1, posterSide / width, posterSide / height);
  const even = (side: number): number => Math.max(2, 2 * Math.round((side * scale) / 2));
  // Seeking in a clip gains nothing and may land behind its only picture.
  const atSeconds = durationSeconds < 3 ? 0 : Math.round(durationSeconds * 100) / 1000;
  return { atSeconds, width: even(width), height: even(height) };
}

function pictureNotes(video: ProbedVideo, picture: ManifestVideo, probe: SourceProbe): PlanNote[] {
  const notes = colourNotes(video, picture);
  if (picture.deinterlace !== 'none') {
    notes.push({ code: 'deinterlaced', text: 'Interlaced pictures were deinterlaced, one frame for each.' });
  }
  if (picture.rotation !== 0 || picture.mirrored) {
    const text = `The picture was turned by ${picture.rotation}°${picture.mirrored ? ' and mirrored' : ''}, as players show it.`;
    notes.push({ code: 'rotated', text });
  }
  if (video.pixelAspect !== 1) {
    const text = `Pixels were made square: ${video.width} × ${video.height} is shown as ${picture.displayWidth} × ${picture.displayHeight}.`;
    notes.push({ code: 'square_pixels', text });
  }
  if (probe.discontinuous) {
    notes.push({ code: 'clock_straightened', text: 'The clock of the file jumps; the parts were joined.' });
  }
  const others = probe.video.filter((v) => v !== video && !v.isAttachment).length;
  if (others > 0)
    notes.push({ code: 'video_not_offered', text: `${others} further video tracks are not offered.` });
  return notes;
}

function timelineNotes({ grid, heldFrames, leadSeconds }: Timeline): PlanNote[] {
  const notes: PlanNote[] = [];
  const rate = formatRational(grid.rate);
  if (grid.variable) {
    notes.push({ code: 'constant_rate', text: `The variable frame rate became a constant ${rate}.` });
  } else if (toNumber(grid.rate) !== toNumber(grid.sourceRate)) {
    notes.push({
      code: 'rate_divided',
      text: `${formatRational(grid.sourceRate)} frames a second became ${rate}.`,
    });
  }
  if (heldFrames > 0) {
    notes.push({
      code: 'picture_held',
      text: 'The sound is longer than the picture; the last picture stays.',
    });
  }
  if (leadSeconds > 0) {
    notes.push({
      code: 'picture_late',
      text: 'The sound begins before the picture; the first picture stands in.',
    });
  }
  return notes;
}
