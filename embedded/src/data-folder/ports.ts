import { join } from 'node:path';
import { isFreePort, type Logger, quietPort } from '@millrace/platform';
import { z } from 'zod';
import { DamagedFileError, readJsonFile, writeJsonFile } from './json-file.ts';

const schema = z.record(z.string(), z.number().int().min(1).max(65_535));

/**
 * A port for each name: the configured one, else the one that this data folder had last time, else a free one. Part
 * URLs and playback addresses that are already out keep working over a restart.
 * @param wanted configured ports; 0 for any
 */
export async function choosePorts<Name extends string>(
  dataDir: string,
  host: string,
  wanted: Readonly<Record<Name, number>>,
  logger: Logger,
): Promise<Record<Name, number>> {
  const path = join(dataDir, 'ports.json');
  const remembered = readRemembered(path, logger);
  const chosen: Record<string, number> = {};
  for (const [name, configured] of Object.entries<number>(wanted)) {
    if (configured !== 0) chosen[name] = configured;
    else
      chosen[name] = await rememberedOrFree(host, remembered[name], Object.values(chosen), (port) => {
        logger.warn({ name, port }, 'the port of the last run is taken, so its addresses change');
      });
  }
  writeJsonFile(path, { ...remembered, ...chosen });
  return chosen;
}

/** What is remembered wrongly is not remembered: new ports are worth more than no start. */
function readRemembered(path: string, logger: Logger): Readonly<Record<string, number>> {
  try {
    return schema.safeParse(readJsonFile(path)).data ?? {};
  } catch (error) {
    if (!(error instanceof DamagedFileError)) throw error;
    logger.warn({ path }, 'the ports of the last run cannot be read, so its addresses change');
    return {};
  }
}

async function rememberedOrFree(
  host: string,
  remembered: number | undefined,
  chosen: readonly number[],
  onTaken: (port: number) => void,
): Promise<number> {
  if (remembered !== undefined && !chosen.includes(remembered)) {
    if (await isFreePort(host, remembered)) return remembered;
    onTaken(remembered);
  }
  return quietPort(host, chosen);
}
