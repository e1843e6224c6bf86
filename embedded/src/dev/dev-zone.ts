import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readJsonFile, writeJsonFile } from '../data-folder/json-file.ts';
import { createDnsServer, type DnsServer } from './dns-server.ts';

const schema = z.record(z.string(), z.array(z.string()));
type TxtRecords = z.output<typeof schema>;

const pathOf = (dataDir: string): string => join(dataDir, 'dev-zone.json');
const readRecords = (dataDir: string): TxtRecords => schema.parse(readJsonFile(pathOf(dataDir)) ?? {});

/** Adds a TXT value to a name in the development zone, or removes it. Returns the name's values. */
export function changeDevTxt(
  dataDir: string,
  change: { name: string; value: string; remove: boolean },
): { name: string; values: string[] } {
  const records = readRecords(dataDir);
  const name = change.name.toLowerCase().replace(/\.$/, '');
  const others = (records[name] ?? []).filter((value) => value !== change.value);
  const values = change.remove ? others : [...others, change.value];
  mkdirSync(dataDir, { recursive: true });
  writeJsonFile(pathOf(dataDir), { ...records, [name]: values });
  return { name, values };
}

/**
 * The development DNS server: answers from the zone file in the data folder, which the command line changes. The
 * file is looked at before each answer, so a change counts from the next query on.
 */
export async function startDevDns(dataDir: string, host: string): Promise<DnsServer> {
  let seen: number | undefined;
  let known: TxtRecords = {};
  const refresh = (): void => {
    const changed = statSync(pathOf(dataDir), { throwIfNoEntry: false })?.mtimeMs;
    if (changed === seen) return;
    seen = changed;
    const records = readRecords(dataDir);
    for (const name of Object.keys({ ...known, ...records })) server.set(name, 'TXT', records[name] ?? []);
    known = records;
  };
  const server = await createDnsServer({ host, onQuery: refresh });
  return server;
}
