export { classifyHead, classifyVideoError, isUndecodableSound, unreadable } from './classify.ts';
export { type ChunkEdges, firstBreak, readEdges } from './chunk-args.ts';
export {
  audioTaskArgs,
  imagesTaskArgs,
  type PosterPlace,
  soundCopyArgs,
  type TaskOptions,
  videoTaskArgs,
} from './ffmpeg-args.ts';
export { createPacketScan, type PacketScan } from './packet-scan.ts';
export { planEncode, type PlanOptions } from './planner.ts';
export { probeArgs, samplePackets, scanArgs } from './probe-args.ts';
export {
  buildProbe,
  needsLongerSample,
  type ProbeHeader,
  readProbeHeader,
  type SourceProbe,
} from './probe.ts';
export { sniffBytes, sniffContainer } from './sniff.ts';
export * from './types.ts';
export { wholeEncode } from './work-plan.ts';
