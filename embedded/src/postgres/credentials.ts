import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { z } from 'zod';
import { PostgresError } from './errors.ts';

/** PostgreSQL's own superuser: makes the role and database of the services, and is used for nothing else. */
export const ADMIN = 'postgres';
/** The services' role, and their database, which it owns. */
export const SERVICE = 'millrace';

const credentialsSchema = z.object({ admin: z.string().min(32), service: z.string().min(32) });

/** Passwords by role. */
export type Credentials = z.infer<typeof credentialsSchema>;

/** New passwords, written for the owner's eyes alone and safe on disk when this returns. */
export function createCredentials(path: string): Credentials {
  const credentials = { admin: newPassword(), service: newPassword() };
  const file = openSync(path, 'wx', 0o600);
  writeSync(file, `${JSON.stringify(credentials)}\n`);
  fsyncSync(file);
  closeSync(file);
  return credentials;
}

/** @throws PostgresError `damaged` when the file is missing or not what was written. */
export function readCredentials(path: string): Credentials {
  try {
    return credentialsSchema.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    throw new PostgresError('damaged', `${path} cannot be read; restore it from a backup`, { cause: error });
  }
}

/** A connection string over loopback. The passwords are base64url, which needs no escaping in a URL. */
export function connectionString(role: string, password: string, port: number, database: string): string {
  return `postgres://${role}:${password}@127.0.0.1:${port}/${database}`;
}

function newPassword(): string {
  return randomBytes(32).toString('base64url');
}
