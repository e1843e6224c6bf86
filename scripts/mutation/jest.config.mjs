// What Stryker runs a mutant's tests with: the settings of the unit tests, for the tests of one area. The database
// of those that want one is started once, around all mutants.
import { fileURLToPath } from 'node:url';
import config from '../../jest.config.mjs';
import { areas } from './areas.ts';

const { MILLRACE_MUTATION_AREA: name } = process.env;
const area = areas.find((each) => each.name === name);
if (area === undefined) throw new Error(`MILLRACE_MUTATION_AREA names no area: ${name}`);
const { displayName, testPathIgnorePatterns, roots, ...unit } = config.projects[0];

export default {
  ...unit,
  rootDir: fileURLToPath(new URL('../..', import.meta.url)),
  roots: [`<rootDir>/${area.root}`],
  testMatch: area.tests.map((glob) => (glob.startsWith('!') ? glob : `<rootDir>/${glob}`)),
  testTimeout: config.testTimeout,
};
