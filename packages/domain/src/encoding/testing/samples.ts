import { noPackets, type PacketTimes, type ProbedAudio, type ProbedVideo } from '../probe.ts';
import { type ManifestVideo } from '../types.ts';

/** What the probe says of plain streams; tests change what they are about. */

export const timesOf = (packets: number): PacketTimes => ({ ...noPackets, packets, listed: packets });

export const videoOf = (more: Partial<ProbedVideo> = {}): ProbedVideo => ({
  index: 0,
  codec: 'h264',
  width: 1280,
  height: 720,
  pixelFormat: 'yuv420p',
  pixelAspect: 1,
  matrix: null,
  fieldOrder: 'progressive',
  sample: { frames: 60, interlaced: 0, topFirst: 0 },
  firstTick: 0,
  fieldPackets: false,
  alpha: false,
  colour: { range: 'tv', matrix: 'bt709', primaries: 'bt709', transfer: 'bt709' },
  timeBase: [1, 1000],
  startSeconds: 0,
  declaredRates: [[25, 1]],
  isDefault: false,
  isAttachment: false,
  declaredPictures: null,
  times: timesOf(100),
  ...more,
});

export const audioOf = (more: Partial<ProbedAudio> = {}): ProbedAudio => ({
  index: 1,
  codec: 'aac',
  codecTag: 'mp4a',
  channels: 2,
  layout: 'stereo',
  sampleRate: 48_000,
  language: null,
  title: null,
  isDefault: false,
  isSpecial: false,
  timeBase: [1, 1000],
  startSeconds: 0,
  times: timesOf(100),
  ...more,
});

export const manifestVideoOf = (more: Partial<ManifestVideo> = {}): ManifestVideo => ({
  stream: 0,
  codec: 'h264',
  decoder: null,
  width: 1920,
  height: 1080,
  pixelFormat: 'yuv420p',
  rotation: 0,
  mirrored: false,
  displayWidth: 1920,
  displayHeight: 1080,
  colour: { matrix: 'bt709', primaries: 'bt709', transfer: 'bt709', range: 'tv' },
  toneMap: 'none',
  alpha: false,
  deinterlace: 'none',
  ...more,
});
