export {
  createDatabase,
  type Database,
  type DatabaseOptions,
  DatabaseUnavailableError,
  isUniqueViolation,
  type Queryable,
  type Transaction,
} from './db.ts';
export { migrate } from './migrate.ts';
