import { describe, expect, it } from '@jest/globals';
import { type ServiceEnd } from '../../../dev/stack/service-process.ts';
import { unaskedEnds } from './ends.ts';
import { type PhaseReached } from './phase-log.ts';

const end = { pid: 7, how: 'SIGKILL', startedAt: 1_000, endedAt: 2_000 };
const failedStart = { ...end, how: '1' };
const saysSo = `{"level":60,"time":"${new Date(1_500).toISOString()}","msg":"could not run"}`;
const order = { id: 'a', phase: 'task.claimed', signal: 'SIGKILL', where: '' } as const;

interface Past {
  ends?: ServiceEnd[];
  killed?: number[];
  outages?: { from: number; to: number }[];
  log?: string[];
  reached?: PhaseReached[];
}

const unasked = ({ ends = [], killed = [], outages = [], log = [], reached = [] }: Past): string[] =>
  unaskedEnds(
    {
      ...{ stack: { services: new Map([['api', { name: 'api', ends }]]) } },
      ...{ killed: new Set(killed), outages, readLog: () => log },
    },
    reached,
  );

describe('ends of processes', () => {
  it('are all right when the campaign killed them', () => {
    expect(unasked({ ends: [end], killed: [7] })).toEqual([]);
    const reached = [{ pid: 7, service: 'api', phase: order.phase, details: {}, order }];
    expect(unasked({ ends: [end], reached })).toEqual([]);
  });

  it.each<[string, Past, string]>([
    ['a crash', { ends: [{ ...end, how: '1' }] }, 'api (7) ended with 1'],
    ['a kill by somebody else', { ends: [end] }, 'api (7) ended with SIGKILL'],
    [
      'a crash before a kill',
      {
        ends: [
          { ...end, how: '1' },
          { ...end, pid: 8 },
        ],
        killed: [8],
      },
      'api (7) ended with 1',
    ],
    [
      'a crash while a server is away',
      { ends: [failedStart], outages: [{ from: 500, to: 1_200 }] },
      'api (7) ended with 1',
    ],
    [
      'a start that failed while all was there',
      { ends: [failedStart], log: [saysSo] },
      'api (7) ended with 1',
    ],
    ['a kill that ended nothing', { killed: [9] }, '9 was killed and did not end'],
  ])('are told: %s', (_, past, told) => {
    expect(unasked(past)).toEqual([told]);
  });

  it('are all right when a start failed while a server was away', () => {
    const outages = [{ from: 500, to: 1_200 }];
    expect(unasked({ ends: [failedStart], outages, log: [saysSo] })).toEqual([]);
  });
});
