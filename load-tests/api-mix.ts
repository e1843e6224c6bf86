import { createTest } from './k6/create-test.ts';

const test = createTest('api-mix', (path) => open(path, 'b'));

export const { options, setup, teardown } = test;
export const customerCall = test.run('customerCall');
