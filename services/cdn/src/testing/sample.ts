import {
  type AccountPlaybackState,
  type DeliveryIndex,
  type ProjectPlaybackState,
  type VideoPlaybackState,
} from '@millrace/contract';
import { type ObjectStore } from '@millrace/objects';

/** A ready video with three qualities and sound; the bytes are a pattern, each place in them telling itself apart. */
export const sample = {
  videoId: 'vid_0000000000000000000001',
  accountId: 'acc_0000000000000000000001',
  projectId: 'prj_0000000000000000000001',
  title: 'Two & a <half>',
  domain: 'shop.example.com',
  indexKey: 'encodes/one/index.json',
  segmentBytes: 200_000,
  initBytes: 800,
  posterBytes: 5_000,
} as const;

export const pattern = (seed: number, bytes: number): Buffer => {
  const body = Buffer.alloc(bytes);
  for (let i = 0; i + 4 <= bytes; i += 4) body.writeUInt32LE(((seed << 24) | i) >>> 0, i);
  return body;
};

const qualities = ['360p', '720p', '1080p'] as const;
const segments = 4;
const objectBytes = sample.initBytes + segments * sample.segmentBytes;

/** What the object of a track holds. */
export const trackBytes = (track: string): Buffer => pattern(track.length + track.charCodeAt(0), objectBytes);

export const segmentBytes = (track: string, n: number): Buffer => {
  const from = sample.initBytes + n * sample.segmentBytes;
  return trackBytes(track).subarray(from, from + sample.segmentBytes);
};

const trackOf = (name: string, timescale: number, ticks: number, keyBytes: number, codec: string) => ({
  timescale,
  objects: [`encodes/one/${name}.mp4`],
  init: [0, 0, sample.initBytes] as [number, number, number],
  segments: Array.from({ length: segments }, (_, n): [number, number, number, number, number] => [
    0,
    sample.initBytes + n * sample.segmentBytes,
    sample.segmentBytes,
    ticks,
    keyBytes,
  ]),
  peakBandwidth: 300_000,
  averageBandwidth: 280_000,
  codec,
});

export const sampleIndex: DeliveryIndex = {
  v: 1,
  videoId: sample.videoId,
  durationMs: 24_024,
  renditions: qualities.map((quality) => ({
    ...trackOf(quality, 30_000, 180_180, 40_000, 'avc1.64001f'),
    quality,
    width: 1280,
    height: 720,
    frameRate: '30000/1001',
  })),
  audio: [
    { ...trackOf('audio', 48_000, 288_288, 0, 'mp4a.40.2'), name: 'Sound', language: 'en', channels: 2 },
  ],
  files: {
    'poster.jpg': { key: 'encodes/one/poster.jpg', bytes: sample.posterBytes, contentType: 'image/jpeg' },
    'storyboard.vtt': { key: 'encodes/one/storyboard.vtt', bytes: 63, contentType: 'text/vtt' },
    'storyboard-0.jpg': { key: 'encodes/one/storyboard-0.jpg', bytes: 4_000, contentType: 'image/jpeg' },
  },
};

export const storyboard = 'WEBVTT\n\n00:00.000 --> 00:24.024\nstoryboard-0.jpg#xywh=0,0,16,9\n';

export const videoState = (more: Partial<VideoPlaybackState> = {}): VideoPlaybackState => ({
  videoId: sample.videoId,
  accountId: sample.accountId,
  version: 5,
  status: 'ready',
  indexKey: sample.indexKey,
  projectId: sample.projectId,
  title: sample.title,
  captions: [],
  ...more,
});

export const projectState = (more: Partial<ProjectPlaybackState> = {}): ProjectPlaybackState => ({
  projectId: sample.projectId,
  version: 2,
  branding: { hideLogo: true, primaryColor: '#c01048', logoUrl: 'https://shop.example.com/logo.svg' },
  ...more,
});

export const accountState = (more: Partial<AccountPlaybackState> = {}): AccountPlaybackState => ({
  accountId: sample.accountId,
  version: 3,
  maxQuality: '720p',
  overWatchLimit: false,
  whiteLabel: false,
  ...more,
});

/** Puts the sample's objects into a store. */
export async function storeSample(objects: ObjectStore): Promise<void> {
  await objects.put(sample.indexKey, Buffer.from(JSON.stringify(sampleIndex)));
  for (const track of [...qualities, 'audio']) {
    await objects.put(`encodes/one/${track}.mp4`, trackBytes(track));
  }
  await objects.put('encodes/one/poster.jpg', pattern(9, sample.posterBytes));
  await objects.put('encodes/one/storyboard.vtt', Buffer.from(storyboard));
  await objects.put('encodes/one/storyboard-0.jpg', pattern(8, 4_000));
}
