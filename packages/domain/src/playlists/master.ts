import {
  type CaptionsPlaybackState,
  type DeliveryIndex,
  type DeliveryTrack,
  type Quality,
  withinQuality,
} from '@millrace/contract';
import { audioName, segmentMicroseconds } from './media.ts';

type Rendition = DeliveryIndex['renditions'][number];
type AudioTrack = DeliveryIndex['audio'][number];

/** Captions as a master playlist offers them. */
type OfferedCaptions = Pick<CaptionsPlaybackState, 'language' | 'name'>;

const audioGroup = 'audio';
const captionsGroup = 'captions';

/**
 * The master playlist of a video with the renditions up to `maximum` (contract: "lists only the qualities the
 * plan allows"), by rising quality, and with each language's captions. Links are relative to the video's folder.
 */
export function renderMaster(
  index: DeliveryIndex,
  maximum: Quality,
  captions: readonly OfferedCaptions[] = [],
): string {
  const renditions = index.renditions.filter(({ quality }) => withinQuality(quality, maximum));
  const lines = [
    ...['#EXTM3U', '#EXT-X-VERSION:7', '#EXT-X-INDEPENDENT-SEGMENTS'],
    ...audioTags(index.audio),
    ...captionsTags(captions),
  ];
  for (const rendition of renditions) {
    const stream = streamTag(rendition, index.audio, captions.length > 0);
    lines.push(stream, `${rendition.quality}/index.m3u8`);
  }
  for (const rendition of renditions) lines.push(iframeTag(rendition));
  return `${lines.join('\n')}\n`;
}

/**
 * BANDWIDTH must cover the variant with whichever audio is chosen (RFC 8216 §4.3.4.2), so the dearest of the
 * group counts; so does CODECS, which must name every format of the group.
 */
function streamTag(rendition: Rendition, audio: readonly AudioTrack[], captioned: boolean): string {
  const peak = Math.max(0, ...audio.map((track) => track.peakBandwidth));
  const average = Math.max(0, ...audio.map((track) => track.averageBandwidth));
  const codecs = new Set([rendition.codec, ...audio.map((track) => track.codec)]);
  return tag('EXT-X-STREAM-INF', [
    ['BANDWIDTH', rendition.peakBandwidth + peak],
    ['AVERAGE-BANDWIDTH', rendition.averageBandwidth + average],
    ['CODECS', quote([...codecs].join(','))],
    ['RESOLUTION', `${rendition.width}x${rendition.height}`],
    ['FRAME-RATE', frameRate(rendition.frameRate)],
    ['AUDIO', audio.length > 0 ? quote(audioGroup) : null],
    ['SUBTITLES', captioned ? quote(captionsGroup) : null],
  ]);
}

function iframeTag(rendition: Rendition): string {
  const { peak, average } = iframeBandwidth(rendition);
  return tag('EXT-X-I-FRAME-STREAM-INF', [
    ['BANDWIDTH', peak],
    ['AVERAGE-BANDWIDTH', average],
    ['CODECS', quote(rendition.codec)],
    ['RESOLUTION', `${rendition.width}x${rendition.height}`],
    ['URI', quote(`${rendition.quality}/iframes.m3u8`)],
  ]);
}

/**
 * One tag per audio track. The first is the default; the others are chosen by themselves only where their
 * language tells them apart, and names are made unique, as a group demands (RFC 8216 §4.3.4.1.1).
 */
function audioTags(audio: readonly AudioTrack[]): string[] {
  const names = new Set<string>();
  const languages = new Set<string>();
  return audio.map((track, position) => {
    const language = track.language !== null && isLanguage(track.language) ? track.language : null;
    const distinct = language !== null && !languages.has(language.toLowerCase());
    if (language !== null) languages.add(language.toLowerCase());
    return tag('EXT-X-MEDIA', [
      ['TYPE', 'AUDIO'],
      ['GROUP-ID', quote(audioGroup)],
      ['NAME', quote(uniqueName(track.name, names, 'Audio'))],
      ['LANGUAGE', language === null ? null : quote(language)],
      ['DEFAULT', position === 0 ? 'YES' : 'NO'],
      ['AUTOSELECT', position === 0 || distinct ? 'YES' : 'NO'],
      ['CHANNELS', quote(`${track.channels}`)],
      ['URI', quote(`${audioName(position)}/index.m3u8`)],
    ]);
  });
}

/** Never shown unasked; players that are told to may choose by their user's language. */
function captionsTags(captions: readonly OfferedCaptions[]): string[] {
  const names = new Set<string>();
  return captions.map(({ language, name }) =>
    tag('EXT-X-MEDIA', [
      ['TYPE', 'SUBTITLES'],
      ['GROUP-ID', quote(captionsGroup)],
      ['NAME', quote(uniqueName(name, names, language))],
      ['LANGUAGE', quote(language)],
      ['DEFAULT', 'NO'],
      ['AUTOSELECT', 'YES'],
      ['URI', quote(`captions/${language}/index.m3u8`)],
    ]),
  );
}

function uniqueName(wanted: string, taken: Set<string>, nameless: string): string {
  // Names come out of customers' files: a quote or line break in one would end the attribute or the line.
  const name =
    wanted
      .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ')
      .replaceAll('"', "'")
      .trim() || nameless;
  let unique = name;
  for (let n = 2; taken.has(unique); n++) unique = `${name} ${n}`;
  taken.add(unique);
  return unique;
}

/** A BCP 47 tag in form; `und` says nothing, so it is left out. */
const isLanguage = (text: string): boolean =>
  /^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/.test(text) && text.toLowerCase() !== 'und';

type Attribute = readonly [name: string, value: string | number | null];

const tag = (name: string, attributes: readonly Attribute[]): string => {
  const present = attributes.filter(([, value]) => value !== null);
  return `#${name}:${present.map(([key, value]) => `${key}=${value ?? ''}`).join(',')}`;
};

const quote = (text: string): string => `"${text}"`;

/** `30000/1001` as a decimal with three places, as FRAME-RATE wants it. */
function frameRate(fraction: string): string {
  const [numerator = '', denominator = '1'] = fraction.split('/');
  return (Number(numerator) / Number(denominator)).toFixed(3);
}

/**
 * Peak and average bits per second of a rendition's I-frames. The peak is that of a single one, each over the
 * whole time it stands for; a last one that is shorter than half the longest is not taken alone
 * (RFC 8216 §4.1: sets of 0.5 to 1.5 target durations).
 */
function iframeBandwidth(track: DeliveryTrack): { peak: number; average: number } {
  const durations = segmentMicroseconds(track);
  const longest = Math.max(...durations);
  let bits = 0;
  let time = 0;
  let peak = 0;
  for (const [n, [, , , , keyBytes]] of track.segments.entries()) {
    const own = durations[n] ?? 0;
    bits += keyBytes * 8;
    time += own;
    if (own * 2 >= longest) peak = Math.max(peak, (keyBytes * 8e6) / own);
  }
  const average = Math.ceil((bits * 1e6) / time);
  return { peak: Math.max(average, Math.ceil(peak)), average };
}
