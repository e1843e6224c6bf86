import { canonicalLanguage } from '../captions/language.ts';
import { type ProbedAudio } from './probe.ts';
import { toNumber } from './rational.ts';
import { type ManifestAudioTrack, type PlanNote } from './types.ts';

/** Samples in one AAC frame (ISO 14496-3, AAC-LC). */
export const aacFrame = 1024;
const maxTracks = 8;

/** Cameras put several frames into a packet (3GPP TS 26.244 §6.5), of which ffmpeg 5.1 decodes the first. */
const packed = ['amr_nb', 'amr_wb'];

/** True when ffmpeg has a decoder for it, as far as the probe can tell. */
const isDecodable = (audio: ProbedAudio): boolean =>
  audio.codec !== null && audio.channels > 0 && audio.sampleRate > 0 && audio.times.packets > 0;

/** BCP 47 by ISO 639-2 or BCP 47; null for `und` and anything that is no language. */
function languageTag(text: string | null): string | null {
  if (text === null || !/^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$/.test(text)) return null;
  const tag = canonicalLanguage(text);
  return tag === null || /^(mul|zxx|mis)\b/.test(tag) ? null : tag;
}

/**
 * The tracks to offer, the default first: the source's default (else its first), then one more for each
 * further language. Tracks of the same or of no language are other mixes or channels of the same sound.
 */
export function chooseAudio(all: readonly ProbedAudio[]): { chosen: ProbedAudio[]; notes: PlanNote[] } {
  const usable = all.filter(isDecodable);
  const ranked = [...usable].sort(
    (a, b) =>
      Number(a.isSpecial) - Number(b.isSpecial) ||
      Number(b.isDefault) - Number(a.isDefault) ||
      a.index - b.index,
  );
  const chosen: ProbedAudio[] = [];
  const languages = new Set<string | null>([null]);
  for (const track of ranked) {
    const language = languageTag(track.language);
    if (chosen.length > 0 && (languages.has(language) || chosen.length === maxTracks)) continue;
    languages.add(language);
    chosen.push(track);
  }
  return { chosen, notes: [...undecodableNotes(all, chosen.length === 0), ...droppedNotes(usable, chosen)] };
}

function undecodableNotes(all: readonly ProbedAudio[], silent: boolean): PlanNote[] {
  return all
    .filter((track) => !isDecodable(track))
    .map((track) => ({
      code: track.times.packets === 0 ? 'sound_empty' : 'sound_undecodable',
      text:
        (track.times.packets === 0
          ? `Sound track ${track.index} holds no sound.`
          : `Sound track ${track.index} (${track.codec ?? track.codecTag}) cannot be decoded.`) +
        (silent ? ' The video plays silent; upload it with AAC sound to have it heard.' : ''),
    }));
}

const droppedNotes = (usable: readonly ProbedAudio[], chosen: readonly ProbedAudio[]): PlanNote[] =>
  usable
    .filter((track) => !chosen.includes(track))
    .map((track) => ({
      code: 'sound_not_offered',
      text: `Sound track ${track.index} is not offered: another one has its language, or it names none.`,
    }));

export const startSeconds = (track: ProbedAudio): number => track.times.firstTick * toNumber(track.timeBase);
export const endSeconds = (track: ProbedAudio): number => track.times.endTick * toNumber(track.timeBase);

/**
 * The output of a track that plays `seconds` from presentation zero: AAC-LC, one or two channels, 44.1 or
 * 48 kHz, whole AAC frames.
 */
export function planTrack(
  track: ProbedAudio,
  name: string,
  seconds: number,
  segmentSeconds: number,
): ManifestAudioTrack {
  const sampleRate = track.sampleRate > 0 && 44_100 % track.sampleRate === 0 ? 44_100 : 48_000;
  const channels = track.channels === 1 ? 1 : 2;
  return {
    stream: track.index,
    name,
    language: languageTag(track.language),
    channels,
    sampleRate,
    bitrate: channels === 1 ? 80_000 : 128_000,
    sourceChannels: track.channels,
    sourceLayout: track.layout,
    copiedFromSeconds: packed.includes(track.codec ?? '') ? startSeconds(track) : null,
    segmentFrames: Math.max(1, Math.round((segmentSeconds * sampleRate) / aacFrame)),
    frames: Math.max(1, Math.ceil((seconds * sampleRate) / aacFrame - 1e-6)),
  };
}

/** Names that a player's menu shows: the track's title, else its language's own name; unique, quotable. */
export function trackNames(tracks: readonly ProbedAudio[]): string[] {
  const used = new Set<string>();
  return tracks.map((track) => {
    const base = cleanName(track.title) ?? languageName(languageTag(track.language)) ?? 'Audio';
    let name = base;
    for (let n = 2; used.has(name); n++) name = `${base} ${n}`;
    used.add(name);
    return name;
  });
}

/** HLS quoted strings hold no quotes and no line ends (RFC 8216 §4.2). */
function cleanName(title: string | null): string | null {
  const clean = (title ?? '')
    .replace(/["\u0000-\u001f\u007f]/g, ' ')
    .trim()
    .slice(0, 80);
  return clean === '' ? null : clean;
}

const languageName = (tag: string | null): string | null =>
  tag === null ? null : (new Intl.DisplayNames([tag], { type: 'language' }).of(tag) ?? tag);
