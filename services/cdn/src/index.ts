export { type CdnConfig, cdnConfig } from './config.ts';
export { type Cdn, type CdnDeps, createCdn } from './service.ts';
