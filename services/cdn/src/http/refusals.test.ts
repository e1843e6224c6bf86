import { expect, it } from '@jest/globals';
import { createRefusals } from './refusals.ts';

it('makes the problem of a code once', () => {
  const refusals = createRefusals('https://docs.example.com');
  const refusal = refusals.of('token_expired');
  expect(refusal.status).toBe(403);
  expect(JSON.parse(refusal.body.toString())).toEqual({
    type: 'https://docs.example.com/errors/token_expired',
    title: 'The token has expired.',
    status: 403,
    code: 'token_expired',
  });
  expect(refusals.of('token_expired')).toBe(refusal);
  expect(refusals.of('not_found').status).toBe(404);
});
