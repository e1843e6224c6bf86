import { expect, it } from '@jest/globals';
import { siblingName } from './object-names.ts';

const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

it.each([
  'a',
  'a'.repeat(253),
  `${'b'.repeat(235)}.-.c${'d'.repeat(15)}`,
  `${'e'.repeat(235)}-${'f'.repeat(17)}`,
])('makes a valid name beside %s', (name) => {
  const made = siblingName(name, 'x');
  expect(made).toMatch(subdomain);
  expect(made.length).toBeLessThanOrEqual(253);
});

it('tells apart what begins alike', () => {
  const [one, two] = [`${'a'.repeat(250)}-1`, `${'a'.repeat(250)}-2`];
  expect(new Set([siblingName(one, 'x'), siblingName(two, 'x'), siblingName(one, 'y')]).size).toBe(3);
});
