import { type ServiceEnd } from '../../../dev/stack/service-process.ts';
import { type PhaseReached } from './phase-log.ts';
import { type Theatre } from './theatre.ts';

/**
 * Ends of processes that the campaign did not bring about, and kills that ended none, as sentences for people. Only a
 * start may fail, and that only while a server is away.
 */
export function unaskedEnds(theatre: Theatre, reached: readonly PhaseReached[]): string[] {
  const ordered = reached.filter(({ order }) => order?.signal === 'SIGKILL').map(({ pid }) => pid);
  const killed = new Set([...theatre.killed, ...ordered]);
  const ends = [...theatre.stack.services.values()].flatMap(({ name, ends }) =>
    ends.map((end) => ({ name, ...end })),
  );
  const isKilled = ({ pid, how }: ServiceEnd): boolean => how === 'SIGKILL' && killed.has(pid);
  const ended = new Set(ends.filter(isKilled).map(({ pid }) => pid));
  return [
    ...ends
      .filter((end) => !isKilled(end) && !isFailedStart(theatre, end))
      .map(({ name, pid, how }) => `${name} (${pid}) ended with ${how}`),
    ...[...killed].filter((pid) => !ended.has(pid)).map((pid) => `${pid} was killed and did not end`),
  ];
}

function isFailedStart({ outages, readLog }: Theatre, end: ServiceEnd & { name: string }): boolean {
  const wasAway = outages.some(({ from, to }) => end.startedAt <= to && end.endedAt >= from);
  return end.how === '1' && wasAway && readLog(end.name).some((line) => saysSo(line, end));
}

/** Whether a line of a service's log tells of a start that failed at the time of this end. */
function saysSo(line: string, { startedAt, endedAt }: ServiceEnd): boolean {
  const [, time = ''] = /"time":"([^"]+)".*"msg":"could not run"/.exec(line) ?? [];
  const at = Date.parse(time);
  return at >= startedAt && at <= endedAt;
}
