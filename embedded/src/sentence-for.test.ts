import { mkdirSync, openSync } from 'node:fs';
import { createServer } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { ConfigError } from '@millrace/platform';
import { DamagedFileError } from './data-folder/json-file.ts';
import { PostgresError } from './postgres/index.ts';
import { sentenceFor } from './sentence-for.ts';

function errorOf(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}

describe('the sentence for an error', () => {
  it.each([
    [new PostgresError('in_use', 'The folder is in use.'), 'The folder is in use.'],
    [new DamagedFileError('/x.json'), '/x.json is damaged: restore it from a backup of the data folder'],
    [errorOf(() => mkdirSync('/dev/null/x')), /'\/dev\/null\/x'.*a part of this path is a file/],
    [errorOf(() => openSync('/no/such/file', 'r')), /'\/no\/such\/file'.*does not exist/],
  ])('%s', (error, sentence) => {
    expect(sentenceFor(error)).toMatch(sentence);
  });

  it('names every bad setting', () => {
    const sentence = sentenceFor(new ConfigError(['A: is bad', 'B: too']));
    expect(sentence).toMatch(/A: is bad[^]*B: too/);
  });

  it('names a port that is taken', async () => {
    const [first, second] = [createServer(), createServer()];
    const port = await new Promise<number>((resolve) => {
      first.listen(0, '127.0.0.1', () => resolve((first.address() as { port: number }).port));
    });
    const error = await new Promise((resolve) => second.once('error', resolve).listen(port, '127.0.0.1'));
    await new Promise((resolve) => first.close(resolve));
    expect(sentenceFor(error)).toMatch(new RegExp(`127.0.0.1:${port}.*another program has this port`));
  });

  it.each([
    new TypeError('x is not a function'),
    'text',
    null,
    undefined,
    Object.assign(new Error('a'), { code: 'ENOENT' }),
  ])('is none for a fault of ours: %p', (error) => {
    expect(sentenceFor(error)).toBeNull();
  });
});
