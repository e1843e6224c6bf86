import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { allPages, etagOf, readAll } from '../conformance/harness.ts';
import { contentOf, partsPerUpload } from './crash-writer.ts';
import { createTestStore, type TestStore } from './test-store.ts';

const rounds = 10;
const seed = Number(process.env['MILLRACE_TEST_SEED'] ?? randomInt(2 ** 31));

/** What one key's life was, as far as the killed process could tell. */
interface Life {
  uploadId?: string;
  parts: Set<number>;
  begun: Set<string>;
  done: Set<string>;
}

describe(`kill -9 at any moment (MILLRACE_TEST_SEED=${seed})`, () => {
  const lives = new Map<string, Life>();
  let test: TestStore;
  beforeAll(async () => {
    test = await createTestStore({ minPartBytes: 1 });
  });
  afterAll(() => test.close());

  it.each(Array.from({ length: rounds }, (_, round) => round))(
    'loses nothing acknowledged, round %i',
    async (round) => {
      const journal = await runUntilKilled(test.root, round, killMoment(seed, round));
      for (const line of journal) record(lives, line);
      await test.reopen();
      for (const [key, life] of lives) await checkKey(test, key, life);
      await checkFolder(test);
      if (round === rounds - 1) {
        // The test itself would be worth nothing if it never saw an object of each kind.
        expect([...lives.values()].filter(({ done }) => done.has('put')).length).toBeGreaterThan(0);
        expect([...lives.values()].filter(({ done }) => done.has('complete')).length).toBeGreaterThan(0);
      }
    },
  );
});

/** Milliseconds after which the writer is killed, counted from its start (the start itself is hit too) or its readiness. */
function killMoment(base: number, round: number): { after: 'start' | 'ready'; ms: number } {
  const number = Math.imul(base + round * 0x9e3779b1, 0x85ebca6b) >>> 0;
  return round % 5 === 4
    ? { after: 'start', ms: 80 + (number % 120) }
    : { after: 'ready', ms: 20 + (number % 300) };
}

function runUntilKilled(root: string, round: number, kill: ReturnType<typeof killMoment>): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const writer = fileURLToPath(new URL('crash-writer.ts', import.meta.url));
    const child = spawn(process.execPath, [writer, root, String(round)], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {},
    });
    let output = '';
    let errors = '';
    let timer: NodeJS.Timeout | undefined;
    const arm = (): void => {
      timer ??= setTimeout(() => child.kill('SIGKILL'), kill.ms);
    };
    if (kill.after === 'start') arm();
    child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.includes('ready')) arm();
    });
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(timer);
      if (code !== null) reject(new Error(`the writer ended by itself with ${code}: ${errors}`));
      // A last line without its end was not told.
      else resolve(output.split('\n').slice(0, -1));
    });
  });
}

function record(lives: Map<string, Life>, line: string): void {
  const [when, what = '', key, detail] = line.split(' ');
  if (key === undefined) return;
  const life = lives.get(key) ?? { parts: new Set(), begun: new Set(), done: new Set() };
  lives.set(key, life);
  if (what === 'create' && detail !== undefined) life.uploadId = detail;
  else if (what === 'part') life.parts.add(Number(detail));
  else (when === 'begin' ? life.begun : life.done).add(what);
}

async function checkKey(
  { store }: TestStore,
  key: string,
  { uploadId, parts, begun, done }: Life,
): Promise<void> {
  const found = (await store.head(key)) !== null;
  const about = `${key} (begun: ${[...begun].join()}; done: ${[...done].join()})`;
  const made = done.has('put') || done.has('complete');
  if (done.has('delete')) expect([about, found]).toEqual([about, false]);
  else if (made && !begun.has('delete')) expect([about, found]).toEqual([about, true]);
  if (found) {
    const names =
      uploadId === undefined
        ? [key]
        : Array.from({ length: partsPerUpload }, (_, index) => `${key}#${index + 1}`);
    expect([about, (await readAll(store, key)).equals(Buffer.concat(names.map(contentOf)))]).toEqual([
      about,
      true,
    ]);
  }
  if (uploadId === undefined) return;
  const listed = await store.listParts({ key, uploadId }).catch(() => null);
  const closed = found || done.has('abort') || done.has('complete');
  if (closed) expect([about, listed]).toEqual([about, null]);
  else if (!begun.has('abort') && !begun.has('delete')) {
    // Its complete was not decided: every part that was acknowledged is still there.
    const etags = new Map(listed?.items.map((part) => [part.partNumber, part.etag]));
    for (const number of parts) {
      expect([about, number, etags.get(number)]).toEqual([
        about,
        number,
        etagOf(contentOf(`${key}#${number}`)),
      ]);
    }
  }
}

/** Nothing is left that belongs to nothing. */
async function checkFolder({ store, root }: TestStore): Promise<void> {
  const inside = async (name: string): Promise<string[]> => (await readdir(path.join(root, name))).sort();
  const open = (await allPages((after) => store.listUploads(after))).map((upload) => upload.uploadId).sort();
  expect(await inside('uploads')).toEqual(open);
  expect(await inside('trash')).toEqual([]);
  const objects = await allPages((after) => store.list('', after));
  expect(await inside('parts')).toHaveLength(objects.filter((object) => object.etag.includes('-')).length);
  const temp = await inside('temp');
  expect(temp).toHaveLength(1);
  expect(await inside(path.join('temp', temp[0] ?? ''))).toEqual([]);
}
