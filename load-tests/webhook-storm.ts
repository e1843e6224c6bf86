import { createTest } from './k6/create-test.ts';

const test = createTest('webhook-storm', (path) => open(path, 'b'));

export const { options, setup, teardown } = test;
export const storm = test.run('storm');
