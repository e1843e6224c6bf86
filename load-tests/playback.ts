import { createTest } from './k6/create-test.ts';

const test = createTest('playback', (path) => open(path, 'b'));

export const { options, setup, teardown } = test;
export const viewer = test.run('viewer');
