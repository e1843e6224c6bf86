import { type ProbedVideo, type SourceProbe } from './probe.ts';
import { type FailureKind, type Sniffed, type SourceFailure, type SourceFailureCode } from './types.ts';

const codes: Record<FailureKind, SourceFailureCode> = {
  empty: 'invalid_file',
  not_media: 'invalid_file',
  not_video: 'no_video_track',
  no_video: 'no_video_track',
  unreadable: 'invalid_file',
  no_decodable_video: 'unsupported_codec',
  unsupported_audio: 'unsupported_codec',
  corrupt: 'invalid_file',
  unsupported_dimensions: 'invalid_file',
  unsafe_reference: 'invalid_file',
  content_type_mismatch: 'invalid_file',
};

const failure = (kind: FailureKind, message: string): SourceFailure => ({
  ok: false,
  code: codes[kind],
  kind,
  message,
});

const readFormats = 'MP4, MOV, WebM, Matroska, MPEG-TS, MPEG-PS, AVI or FLV';

/**
 * The verdict that the first bytes allow (contract "Encoding"): null when the file may be probed.
 * `contentTypes` are those that an upload token bound; MP4 and QuickTime are one family, Matroska and WebM
 * another. An empty list binds nothing.
 */
export function classifyHead(sniffed: Sniffed, contentTypes: readonly string[] = []): SourceFailure | null {
  switch (sniffed.kind) {
    case 'empty':
      return failure('empty', 'The file is empty. Upload it again.');
    case 'audio':
      return failure(
        'no_video',
        `The file is sound only (${sniffed.format}). Upload a file with a video track.`,
      );
    case 'image':
      return failure('not_video', `The file is a still picture (${sniffed.format}). Upload a video file.`);
    case 'reference':
      return failure(
        'unsafe_reference',
        `The file is a ${sniffed.format} list that points to other files. Upload the video itself.`,
      );
    case 'unsupported':
      return failure('not_media', `Files of type ${sniffed.format} are not read. Upload ${readFormats}.`);
    case 'unknown':
      return failure('not_media', `The file is not a video that can be read. Upload ${readFormats}.`);
    case 'video':
      return isBoundTo(sniffed.container, contentTypes)
        ? null
        : failure(
            'content_type_mismatch',
            `The file is not of the type that the upload was allowed for (${contentTypes.join(', ')}). Upload one that is.`,
          );
  }
}

function isBoundTo(container: string, contentTypes: readonly string[]): boolean {
  if (contentTypes.length === 0) return true;
  const families: Record<string, string> = {
    'video/mp4': 'mp4',
    'video/quicktime': 'mp4',
    'video/webm': 'matroska',
    'video/x-matroska': 'matroska',
  };
  return contentTypes.some((type) => families[type] === container);
}

/** The verdict when ffprobe cannot open a file whose first bytes looked like a video. */
export function unreadable(stderr: string): SourceFailure {
  if (/moov atom not found/.test(stderr)) {
    const text = 'The file has no index: it was cut off before its end or is still being recorded.';
    return failure('unreadable', `${text} Export it again and upload the whole file.`);
  }
  return failure('unreadable', 'The file cannot be opened: it is damaged or cut off. Export it again.');
}

const stillCodecs = new Set(
  'png mjpeg jpegls jpeg2000 gif bmp tiff webp ppm pgm pbm pam svg jpegxl'.split(' '),
);
const maxSide = 16_384;

/**
 * Picks the video track, or says why there is none: attached pictures and single stills are no video; of
 * several, one with more than one picture, then the default, then the largest, then the first.
 */
export function chooseVideo(probe: SourceProbe): ProbedVideo | SourceFailure {
  const moving = probe.video.filter((v) => !isStill(v));
  const filled = moving.filter((v) => v.times.packets > 0);
  const best = [...filled].sort(byPreference)[0];
  if (best !== undefined) return judge(best);
  if (moving.some((v) => (v.declaredPictures ?? 0) > 0)) {
    return failure(
      'corrupt',
      'The file lists pictures but none of them is in it: it was cut off. Upload it again.',
    );
  }
  if (probe.audio.length > 0 && probe.audio.every(({ codec }) => codec === null)) {
    return failure(
      'unsupported_audio',
      'The file has nothing but sound in a format that cannot be decoded. Upload a file with a video track.',
    );
  }
  const what = probe.audio.length > 0 ? 'sound only' : 'no moving picture';
  return failure('no_video', `The file has ${what}. Upload a file with a video track.`);
}

const isStill = (v: ProbedVideo): boolean =>
  v.isAttachment || (v.times.packets <= 1 && stillCodecs.has(v.codec ?? ''));

function byPreference(a: ProbedVideo, b: ProbedVideo): number {
  const rank = (v: ProbedVideo): number[] => [
    Number(v.sample.frames > 0),
    Number(v.times.packets > 1),
    Number(v.isDefault),
    v.width * v.height,
    -v.index,
  ];
  const [left, right] = [rank(a), rank(b)];
  return right.map((value, i) => value - (left[i] ?? 0)).find((difference) => difference !== 0) ?? 0;
}

function judge(video: ProbedVideo): ProbedVideo | SourceFailure {
  if (video.codec === null) {
    return failure(
      'no_decodable_video',
      'The video is in a format that cannot be decoded. Upload it as H.264.',
    );
  }
  if (video.sample.frames === 0) {
    const text = `No picture of the ${video.codec} video can be decoded: the file is damaged.`;
    return failure('corrupt', `${text} Export it again.`);
  }
  if (video.width < 1 || video.height < 1 || Math.max(video.width, video.height) > maxSide) {
    const size = `${video.width} × ${video.height}`;
    return failure(
      'unsupported_dimensions',
      `Pictures of ${size} are not supported. Upload it with sides of 1 to ${maxSide} pixels.`,
    );
  }
  return video;
}

/**
 * The verdict on a video task whose ffmpeg ended with an error. A null means that the source is not known
 * to be at fault (out of memory, killed, storage): worth another try.
 */
export function classifyVideoError(stderr: string): SourceFailure | null {
  if (/Decoder \(codec .*\) not found|Decoding requested, but no decoder found/.test(stderr)) {
    return failure(
      'no_decodable_video',
      'The video is in a format that cannot be decoded. Upload it as H.264.',
    );
  }
  if (
    /Error while decoding stream|Invalid data found when processing input|Output file is empty/.test(stderr)
  ) {
    return failure(
      'corrupt',
      'The file is damaged: most of its pictures cannot be decoded. Export it again.',
    );
  }
  return null;
}

/**
 * True when a sound task failed because this sound cannot be decoded: the video then plays silent (of this
 * track) and the ingest report says so. False: not known to be the source's fault.
 */
export const isUndecodableSound = (stderr: string): boolean =>
  /Decoder \(codec .*\) not found|Decoding requested, but no decoder found|Error while decoding stream|Invalid data found|Output file is empty|Error (initializing|reinitializing) filter/.test(
    stderr,
  );
