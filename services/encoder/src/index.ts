export { type EncoderConfig, encoderConfig } from './config.ts';
export { createEncoder, type EncoderDeps } from './service.ts';
