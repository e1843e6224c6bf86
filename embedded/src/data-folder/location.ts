import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const clone = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * Where the data lies: a given folder as the caller means it, from where he stands; by default `.millrace` in the
 * clone, wherever he stands. So `npm start` and the command line find the same data from any folder of the clone.
 */
export const dataFolder = (given?: string): string => resolve(given ?? `${clone}/.millrace`);
