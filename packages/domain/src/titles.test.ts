import { describe, expect, it } from '@jest/globals';
import { titleOf } from './titles.ts';

describe('titleOf', () => {
  it('prefers the given title, verbatim [UPL-203]', () => {
    expect(titleOf({ title: ' A  title.mp4', fileName: 'file.mp4' })).toBe(' A  title.mp4');
  });

  it.each([
    ['holiday.mp4', 'holiday'],
    ['holiday.final.MOV', 'holiday.final'],
    ['عطلة.mp4', 'عطلة'],
    ['no ending', 'no ending'],
    ['Dr. Who, part 2', 'Dr. Who, part 2'],
    ['a\tb\u0007c\u0085d.webm', 'a b c d'],
    ['.mp4', 'Untitled'],
    [' \t.mp4', 'Untitled'],
    ['', 'Untitled'],
    [`${'x'.repeat(250)}.mp4`, 'x'.repeat(200)],
    [`${'🎬'.repeat(201)}.mp4`, '🎬'.repeat(200)],
  ])('makes of the file name %j the title %j [UPL-205]', (fileName, title) => {
    expect(titleOf({ fileName })).toBe(title);
  });

  it('falls back to Untitled', () => {
    expect(titleOf({})).toBe('Untitled');
  });
});
