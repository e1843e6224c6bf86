import { join } from 'node:path';

/** Where things of the embedded PostgreSQL are in the data folder. */
export interface Layout {
  /** Appears whole, when the database has been made, or not at all. */
  home: string;
  /** PostgreSQL's own data directory. */
  cluster: string;
  /** Passwords of the database roles; for the owner of the data folder alone. */
  credentials: string;
  log: string;
  lock: string;
}

/** The layout under a data folder; `home` may be another folder while the database is being made. */
export function layoutOf(dataDir: string, home: string = join(dataDir, 'postgres')): Layout {
  return {
    home,
    cluster: join(home, 'cluster'),
    credentials: join(home, 'credentials.json'),
    log: join(dataDir, 'logs/postgres.log'),
    lock: join(dataDir, 'lock'),
  };
}
