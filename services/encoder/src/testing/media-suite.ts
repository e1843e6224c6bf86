import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { checkReady } from './check-ready.ts';
import { createEncodeBench, type EncodeBench, type EncodeResult } from './encode-bench.ts';
import { codeOfKind, type MediaCase, mediaPath } from './media-cases.ts';

/**
 * One test for each case, on one encoder: all files are in its queue at once, and the checks of one run beside
 * the encodes of the next.
 */
export function describeCases(
  cases: readonly MediaCase[],
  extra?: (media: MediaCase, result: EncodeResult) => void,
): void {
  let bench: EncodeBench;
  let folder: string;
  const videoIds = new Map<string, string>();

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'millrace-media-'));
    bench = await createEncodeBench();
    for (const { file } of cases) videoIds.set(file, await bench.submit(await readFile(mediaPath(file))));
  });
  afterAll(async () => {
    await bench.close();
    await rm(folder, { recursive: true });
  });

  it.each(cases.map((media) => [media.family, media.file, media.why, media] as const))(
    '%s: %s (%s) [ENC-003, ENC-005, ENC-012]',
    async (_family, file, _why, media) => {
      const result = await bench.result(videoIds.get(file) ?? '');
      const expected = media.expect.find(({ outcome }) => outcome === result.status);
      expect([result.status, result.failureCode, expected?.outcome]).toEqual([
        media.expect.map(({ outcome }) => outcome).find((outcome) => outcome === result.status) ??
          media.expect[0]?.outcome,
        expected?.outcome === 'failed' ? codeOfKind[expected.failure_kind] : null,
        result.status,
      ]);
      if (expected?.outcome === 'ready') await checkReady({ bench, folder, file }, result, expected);
      else expect(result.failureMessage).toMatch(/^[A-Z][^]{20,}\.$/);
      extra?.(media, result);
    },
    170_000,
  );
}
