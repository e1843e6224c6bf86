export { type EncoderConfig, encoderConfig } from './config.ts';
export { type EncoderProcess } from './process/encoder-process.ts';
export { createFfmpegProcess } from './process/fluent-ffmpeg-process.ts';
export { createEncoder, type EncoderDeps } from './service.ts';
