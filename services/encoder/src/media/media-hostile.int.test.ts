import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { probeArgs, scanArgs } from '@millrace/domain';
import { silentLogger, systemClock } from '@millrace/platform';
import { createTestObjects, type TestObjects } from '@millrace/testing';
import { createFfprobe } from '../process/media-probe.ts';
import { BlockReader } from '../source/block-reader.ts';
import { createEncodeBench, type EncodeBench } from '../testing/encode-bench.ts';
import { allFamilies, casesOf, familiesOf } from '../testing/media-cases.ts';
import { describeCases } from '../testing/media-suite.ts';
import { disguises, setTraps, type Traps } from '../testing/traps.ts';

it('leaves no family of the manifest out', () => {
  expect(Object.values(familiesOf).flat().sort()).toEqual([...allFamilies].sort());
});

describe('media: hostile', () => {
  describeCases(casesOf(familiesOf.hostile));
});

let traps: Traps;
beforeEach(async () => {
  traps = await setTraps();
});
afterEach(() => traps.close());

const untouched = { file: false, connections: 0 };
const names = Object.keys(disguises({ canary: '', url: '' }));
const contentOf = (name: string): string => disguises(traps)[name] ?? '';

describe('a file that names others', () => {
  let bench: EncodeBench;
  beforeAll(async () => {
    bench = await createEncodeBench();
  });
  afterAll(() => bench.close());

  it.each(names)('%s: fails, and nothing is opened [ENC-019]', async (name) => {
    const videoId = await bench.submit(Buffer.from(contentOf(name)));
    expect(await bench.result(videoId)).toMatchObject({
      status: 'failed',
      failureCode: name === 'SVG' ? 'no_video_track' : 'invalid_file',
    });
    expect(traps.sprung()).toEqual(untouched);
  });
});

describe('the limits on what ffmpeg opens, should such a file get past its first bytes', () => {
  let objects: TestObjects;
  let reader: BlockReader;
  beforeAll(async () => {
    objects = await createTestObjects();
    reader = new BlockReader({
      ...{ objects: objects.objects, clock: systemClock, logger: silentLogger, cacheBytes: 2 ** 20 },
    });
    await reader.listen();
  });
  afterAll(async () => {
    await reader.close();
    await objects.close();
  });

  it.each(names)('%s: is refused, and nothing is opened [ENC-019]', async (name) => {
    await objects.objects.put('videos/vid_1/original/source', Buffer.from(contentOf(name)));
    const source = await reader.open('videos/vid_1/original/source');
    for (const args of [probeArgs(source.url), scanArgs(source.url)]) {
      const run = createFfprobe().run(
        args,
        {
          ...{ wallMs: 20_000, stallMs: 20_000, memoryBytes: 2 ** 30, outputBytes: 2 ** 20 },
          outputFolder: traps.folder,
        },
        { onText: () => undefined, signal: new AbortController().signal },
      );
      await expect(run).rejects.toMatchObject({ end: 'exit' });
    }
    source.close();
    expect(traps.sprung()).toEqual(untouched);
  });
});

describe('the traps', () => {
  it.each([
    ['HLS, an address', { file: false, connections: true }],
    ['HLS, a file', { file: true, connections: false }],
  ])('are sprung by an ffprobe without the list of formats: %s', async (name, sprung) => {
    const file = path.join(traps.folder, 'list.m3u8');
    await writeFile(file, contentOf(name));
    const args = ['-v', 'error', '-protocol_whitelist', 'file,http,tcp', '-i', file];
    await promisify(execFile)('ffprobe', args).catch(() => undefined);
    const seen = traps.sprung();
    expect({ file: seen.file, connections: seen.connections > 0 }).toEqual(sprung);
  });
});
