import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type Logger } from '@millrace/platform';
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
      chosen[name] = await rememberedOrFree(host, remembered[name], (port) => {
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
  onTaken: (port: number) => void,
): Promise<number> {
  if (remembered !== undefined) {
    const port = await probe(host, remembered).catch(() => null);
    if (port !== null) return port;
    onTaken(remembered);
  }
  return probe(host, 0);
}

/** Opens the port and lets it go again; 0 finds a free one. */
async function probe(host: string, port: number): Promise<number> {
  const server = createServer();
  server.listen(port, host);
  await once(server, 'listening');
  const { port: found } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return found;
}
