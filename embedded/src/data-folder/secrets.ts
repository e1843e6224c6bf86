import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { readJsonFile, writeJsonFile } from './json-file.ts';

const secretsSchema = z.object({
  cursorKeys: z.string(),
  playbackKeys: z.string(),
  uploadUrlKeys: z.string(),
  adminToken: z.string(),
  internalSecret: z.string(),
});

/** What the services of one data folder sign and authenticate with. Key sets are `kid:secret[,kid:secret]`. */
export type Secrets = z.output<typeof secretsSchema>;

/**
 * The folder's secrets, made at its first start. To rotate a key set, put a new `kid:secret` in front and restart;
 * take the old one out when nothing signed with it is alive any more.
 * @throws Error when the file is damaged: made anew, every token that is out would be void
 */
export function loadSecrets(dataDir: string): Secrets {
  const path = join(dataDir, 'secrets.json');
  const stored = readJsonFile(path);
  if (stored !== undefined) return secretsSchema.parse(stored);
  const secrets: Secrets = {
    cursorKeys: newKeySet(),
    playbackKeys: newKeySet(),
    uploadUrlKeys: newKeySet(),
    adminToken: newSecret(),
    internalSecret: newSecret(),
  };
  writeJsonFile(path, secrets);
  return secrets;
}

const newSecret = (): string => randomBytes(32).toString('base64url');
const newKeySet = (): string => `k${randomBytes(3).toString('hex')}:${newSecret()}`;
