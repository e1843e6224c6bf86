import { createTest } from './k6/create-test.ts';

const test = createTest('hold-under-load', (path) => open(path, 'b'));

export const { options, setup, teardown } = test;
export const viewer = test.run('viewer');
export const hold = test.run('hold');
export const customerCall = test.run('customerCall');
