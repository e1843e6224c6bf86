import { createTest } from './k6/create-test.ts';

const test = createTest('upload', (path) => open(path, 'b'));

export const { options, setup, teardown } = test;
export const upload = test.run('upload');
