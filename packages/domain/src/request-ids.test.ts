import { expect, it } from '@jest/globals';
import { createRequestIds } from './request-ids.ts';

it('counts the requests of a process, whose random part is another in each', () => {
  const [next, other] = [createRequestIds(), createRequestIds()];
  const ids = Array.from({ length: 40 }, next);
  const boot = ids[0]?.slice(4, 16) ?? '';
  expect(ids.map((id) => id.slice(0, 16))).toEqual(ids.map(() => `req_${boot}`));
  expect(boot).toMatch(/^[A-Za-z0-9]{12}$/);
  expect(ids.map((id) => id.slice(16))).toEqual(ids.map((_, n) => n.toString(36).padStart(10, '0')));
  expect(other().slice(4, 16)).not.toBe(boot);
});
