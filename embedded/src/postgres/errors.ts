/** Why the embedded PostgreSQL does not run. Each message tells the operator what to do. */
export class PostgresError extends Error {
  override readonly name = 'PostgresError';
  readonly code:
    | 'unsupported_platform'
    | 'no_database_user'
    | 'closed_folder'
    | 'in_use'
    | 'version_mismatch'
    | 'damaged'
    | 'init_failed'
    | 'start_failed';
  constructor(code: PostgresError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
