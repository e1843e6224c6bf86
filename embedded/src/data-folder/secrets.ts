import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { DamagedFileError, readJsonFile, writeJsonFile } from './json-file.ts';

const newSecret = (): string => randomBytes(32).toString('base64url');
const newKeySet = (): string => `k${randomBytes(3).toString('hex')}:${newSecret()}`;

/** How each secret is made. A folder of an older version gets those that came later. */
const makers = {
  cursorKeys: newKeySet,
  playbackKeys: newKeySet,
  uploadUrlKeys: newKeySet,
  uploadTokenKeys: newKeySet,
  webhookSecretKeys: newKeySet,
  signInKeys: newKeySet,
  phoneKeys: newKeySet,
  adminToken: newSecret,
  internalSecret: newSecret,
};

/** What the services of one data folder sign and authenticate with. Key sets are `kid:secret[,kid:secret]`. */
export type Secrets = Record<keyof typeof makers, string>;

const stored = z.partialRecord(z.enum(Object.keys(makers) as (keyof Secrets)[]), z.string().min(1));

/**
 * The folder's secrets, made at its first start. To rotate a key set, put a new `kid:secret` in front and restart;
 * take the old one out when nothing signed with it is alive any more.
 * @throws DamagedFileError when the file is damaged: made anew, every token that is out would be void
 */
export function loadSecrets(dataDir: string): Secrets {
  const path = join(dataDir, 'secrets.json');
  const file = readJsonFile(path);
  const known: Partial<Secrets> | undefined = file === undefined ? {} : stored.safeParse(file).data;
  if (known === undefined) throw new DamagedFileError(path);
  const made = Object.entries(makers).map(([name, make]) => [name, known[name as keyof Secrets] ?? make()]);
  const secrets = Object.fromEntries(made) as Secrets;
  if (Object.keys(known).length < made.length) writeJsonFile(path, secrets);
  return secrets;
}
