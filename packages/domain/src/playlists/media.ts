import { type DeliveryIndex, type DeliveryTrack } from '@millrace/contract';

/** A rendition or an audio track of an index, with its path name below the video: `720p`, `audio`, `audio-2`. */
export interface NamedTrack {
  name: string;
  track: DeliveryTrack;
}

/** Path name of the audio track at this position. */
export const audioName = (position: number): string => (position === 0 ? 'audio' : `audio-${position + 1}`);

/** Every track of an index by its path name, renditions first. */
export const namedTracks = (index: DeliveryIndex): NamedTrack[] => [
  ...index.renditions.map((track) => ({ name: track.quality, track })),
  ...index.audio.map((track, position) => ({ name: audioName(position), track })),
];

/** File name of a segment; `n` counts from 0. */
const segmentName = (n: number): string => `seg-${n}.m4s`;

/**
 * Durations of a track's segments as written in EXTINF, in whole microseconds. They are rounded at the sums,
 * so that every sum of them is right to a microsecond however many there are.
 */
export function segmentMicroseconds(track: DeliveryTrack): number[] {
  let ticks = 0;
  let last = 0;
  return track.segments.map(([, , , duration]) => {
    ticks += duration;
    const end = Math.round((ticks / track.timescale) * 1e6);
    const own = end - last;
    last = end;
    return own;
  });
}

/**
 * Seconds for EXT-X-TARGETDURATION: the longest segment, rounded to the nearest (RFC 8216 §4.3.3.1). It is one
 * number for a whole index, since all media playlists of all variants must have the same (§6.2.4).
 */
function targetDuration(index: DeliveryIndex): number {
  let longest = 1;
  for (const { track } of namedTracks(index)) {
    for (const own of segmentMicroseconds(track)) longest = Math.max(longest, Math.round(own / 1e6));
  }
  return longest;
}

const header = (target: number): string[] => [
  '#EXTM3U',
  '#EXT-X-VERSION:7',
  `#EXT-X-TARGETDURATION:${target}`,
  '#EXT-X-MEDIA-SEQUENCE:0',
  '#EXT-X-PLAYLIST-TYPE:VOD',
  '#EXT-X-INDEPENDENT-SEGMENTS',
];
const map = '#EXT-X-MAP:URI="init.mp4"';
const end = '#EXT-X-ENDLIST\n';

/** The media playlist of one track of `index`; links are relative to the track's folder. */
export function renderMedia(index: DeliveryIndex, track: DeliveryTrack): string {
  const lines = [...header(targetDuration(index)), map];
  for (const [n, own] of segmentMicroseconds(track).entries()) {
    lines.push(`#EXTINF:${seconds(own)},`, segmentName(n));
  }
  lines.push(end);
  return lines.join('\n');
}

/**
 * The I-frame playlist of a rendition (RFC 8216 §4.3.3.6): of each segment the bytes up to the end of its first
 * sample, which stands for the segment's whole duration.
 */
export function renderIframes(index: DeliveryIndex, track: DeliveryTrack): string {
  const lines = [...header(targetDuration(index)), '#EXT-X-I-FRAMES-ONLY', map];
  const durations = segmentMicroseconds(track);
  for (const [n, [, , , , keyBytes]] of track.segments.entries()) {
    lines.push(`#EXTINF:${seconds(durations[n] ?? 0)},`, `#EXT-X-BYTERANGE:${keyBytes}@0`, segmentName(n));
  }
  lines.push(end);
  return lines.join('\n');
}

const seconds = (microseconds: number): string => (microseconds / 1e6).toFixed(6);
