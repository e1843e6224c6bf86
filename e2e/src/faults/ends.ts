import { type ServiceEnd, type ServiceProcess } from '../../../dev/stack/service-process.ts';
import { type PhaseReached } from './phase-log.ts';
import { type Theatre } from './theatre.ts';

/** Of the theatre, what tells of ends. */
interface Scene extends Pick<Theatre, 'killed' | 'outages' | 'readLog'> {
  stack: { services: ReadonlyMap<string, Pick<ServiceProcess, 'name' | 'ends'>> };
}

/**
 * Ends of processes that the campaign did not bring about, and kills that ended none, as sentences for people. Only a
 * start may fail, and that only while a server is away.
 */
export function unaskedEnds(scene: Scene, reached: readonly PhaseReached[]): string[] {
  const ordered = reached.filter(({ order }) => order?.signal === 'SIGKILL').map(({ pid }) => pid);
  const killed = new Set([...scene.killed, ...ordered]);
  const ends = [...scene.stack.services.values()].flatMap(({ name, ends }) =>
    ends.map((end) => ({ name, ...end })),
  );
  const isKilled = ({ pid, how }: ServiceEnd): boolean => how === 'SIGKILL' && killed.has(pid);
  const ended = new Set(ends.filter(isKilled).map(({ pid }) => pid));
  return [
    ...ends
      .filter((end) => !isKilled(end) && !isFailedStart(scene, end))
      .map(({ name, pid, how }) => `${name} (${pid}) ended with ${how}`),
    ...[...killed].filter((pid) => !ended.has(pid)).map((pid) => `${pid} was killed and did not end`),
  ];
}

function isFailedStart({ outages, readLog }: Scene, end: ServiceEnd & { name: string }): boolean {
  const wasAway = outages.some(({ from, to }) => end.startedAt <= to && end.endedAt >= from);
  return end.how === '1' && wasAway && readLog(end.name).some((line) => saysSo(line, end));
}

/** Whether a line of a service's log tells of a start that failed at the time of this end. */
function saysSo(line: string, { startedAt, endedAt }: ServiceEnd): boolean {
  const [, time = ''] = /"time":"([^"]+)".*"msg":"could not run"/.exec(line) ?? [];
  const at = Date.parse(time);
  return at >= startedAt && at <= endedAt;
}
