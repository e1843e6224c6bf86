export { migrate } from './migrate.ts';
