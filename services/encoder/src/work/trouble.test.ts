import { describe, expect, it } from '@jest/globals';
import { ObjectStoreError } from '@millrace/objects';
import { DatabaseUnavailableError } from '@millrace/store';
import { EncoderProcessError, type ProcessEnd } from '../process/encoder-process.ts';
import { sourceTrouble, troubleOf, wrongOutput } from './trouble.ts';

const ended = (end: ProcessEnd, stderr = ''): EncoderProcessError =>
  new EncoderProcessError(end, 'ffmpeg ended', stderr);

describe('troubleOf', () => {
  it.each<[string, unknown, string]>([
    ['an unreachable record', new DatabaseUnavailableError('down'), 'infrastructure'],
    ['an unreachable store', new ObjectStoreError('unavailable', 'down'), 'infrastructure'],
    ['a missing object', new ObjectStoreError('no_such_key', 'gone'), 'encoding'],
    ['a program that cannot be started', ended('spawn'), 'infrastructure'],
    ['a crash', ended('signal'), 'encoding'],
    ['a refusal', ended('exit', 'Conversion failed!'), 'encoding'],
    ['a timeout', ended('wall'), 'encoding'],
    ['a standstill', ended('stall'), 'encoding'],
    ['too much memory', ended('memory'), 'encoding'],
    ['too much output', ended('output'), 'encoding'],
    ['a full disk, by ffmpeg', ended('exit', 'video.mp4: No space left on device'), 'room'],
    ['a full disk, by us', Object.assign(new Error('write failed'), { code: 'ENOSPC' }), 'room'],
    ['output that was not planned', wrongOutput('199 of 200 frames'), 'encoding'],
    ['a mistake of ours', new TypeError('x is undefined'), 'encoding'],
    ['anything', 'a string', 'encoding'],
  ])('sorts %s', (_, error, kind) => {
    expect(troubleOf(error).kind).toBe(kind);
  });

  it.each<[string, Error, true | undefined]>([
    ['too much memory', ended('memory'), true],
    ['too much output', ended('output'), true],
    ['a timeout', ended('wall'), true],
    ['a kill', new EncoderProcessError('signal', 'ffmpeg was killed with signal SIGKILL', ''), true],
    ['a crash', new EncoderProcessError('signal', 'ffmpeg was killed with signal SIGSEGV', ''), undefined],
    ['a standstill', ended('stall'), undefined],
    ['a refusal', ended('exit', 'Conversion failed!'), undefined],
  ])('tells whether it took more than it may: %s', (_, error, scarce) => {
    expect((troubleOf(error) as { scarce?: true }).scarce).toBe(scarce);
  });

  it('keeps the failure of a source that is to blame', () => {
    const failure = { code: 'invalid_file', message: 'The file is damaged.' } as const;
    expect(troubleOf(sourceTrouble(failure, 'corrupt'))).toEqual({
      kind: 'source',
      failure,
      message: 'corrupt',
    });
  });

  it('keeps what ffmpeg said', () => {
    expect(troubleOf(ended('signal', 'line 1\nline 2')).message).toBe('ffmpeg ended\nline 1\nline 2');
  });
});
