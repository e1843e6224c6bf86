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
export { type HoldReference, type HoldSource, liftHold, placeHold } from './holds.ts';
export { accountStateMessage, addToOutbox, type OutboxMessage, videoStateMessage } from './outbox.ts';
export * from './videos.ts';
