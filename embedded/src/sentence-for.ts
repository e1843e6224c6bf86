import { ConfigError } from '@millrace/platform';
import { OperatorsProblemError } from './operators-problem.ts';
import { PostgresError } from './postgres/index.ts';

/** What the system says no to because of the folder, the ports or the disk that it was given. */
const hints: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program has this port: stop it, or configure another one',
  EADDRNOTAVAIL: 'this machine does not have this address',
  EACCES: 'permission is missing',
  EPERM: 'permission is missing',
  EROFS: 'it can only be read',
  ENOENT: 'it does not exist',
  ENOTDIR: 'a part of this path is a file',
  EEXIST: 'there is a file where a folder should be',
  EISDIR: 'there is a folder where a file should be',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
};

/** A sentence for the operator about an error that is in his hands; null for a fault of ours. */
export function sentenceFor(error: unknown): string | null {
  const own = [ConfigError, PostgresError, OperatorsProblemError];
  if (own.some((kind) => error instanceof kind)) return (error as Error).message;
  if (typeof error !== 'object' || error === null) return null;
  const { code, syscall, message } = error as NodeJS.ErrnoException;
  const hint = syscall === undefined ? undefined : hints[code ?? ''];
  return hint === undefined ? null : `${message} (${hint})`;
}
