import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { DamagedFileError, readJsonFile, writeJsonFile } from './json-file.ts';

const schema = z.object({
  connectionString: z.string(),
  /** Settings of services that are processes of their own; unset: the embedded service. */
  settings: z.record(z.string(), z.string()).optional(),
});

/** How the command line reaches the record of a running service. For the folder's owner alone. */
export type RunFile = z.output<typeof schema>;

const pathOf = (dataDir: string): string => join(dataDir, 'run.json');

export const writeRunFile = (dataDir: string, run: RunFile): void => writeJsonFile(pathOf(dataDir), run);

export const removeRunFile = (dataDir: string): void => rmSync(pathOf(dataDir), { force: true });

/** Undefined while no service runs, or it is still starting. */
export function readRunFile(dataDir: string): RunFile | undefined {
  try {
    return schema.safeParse(readJsonFile(pathOf(dataDir))).data;
  } catch (error) {
    // The lock of the folder tells for sure whether a service runs.
    if (error instanceof DamagedFileError) return undefined;
    throw error;
  }
}
