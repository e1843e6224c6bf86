export { type CdnHarness, startCdn } from './harness.ts';
export { accountState, projectState, sample, videoState } from './sample.ts';
