import { type Phase } from '@millrace/platform';
import { type PhaseReached } from './phase-log.ts';
import { type RecordKept } from './world.ts';

type Details = PhaseReached['details'];

/** What shows that what a kill left half done was done again. */
interface Redoing {
  /** The parts of what was under way, each of which must come again; none when nothing has to. */
  parts(killed: PhaseReached, record: Pick<RecordKept, 'videos' | 'tasks'>): Details[];
  at: Phase;
  isSame(part: Details, details: Details): boolean;
  what(part: Details): string;
}

const sameAt =
  (...names: string[]): Redoing['isSame'] =>
  (part, details) =>
    names.every((name) => part[name] === details[name]);

const message: Redoing = {
  parts: ({ details }) => [details],
  at: 'message.handled',
  isSame: sameAt('topic', 'partition', 'offset'),
  what: ({ topic, partition, offset }) =>
    `message ${String(offset)} of ${String(topic)} ${String(partition)}`,
};

const rowsOf = ({ rows }: Details): Details[] => rows as Details[];
const outboxRows: Redoing = {
  // Others may be parked, or of a heartbeat, which is written anew.
  parts: ({ details, order }) => rowsOf(details).filter(({ topic }) => topic === order?.where),
  at: 'outbox.read',
  isSame: ({ id }, details) => rowsOf(details).some((row) => row['id'] === id),
  what: ({ id, topic }) => `row ${String(id)} of the outbox, for ${String(topic)},`,
};

const attempt: Redoing = {
  // A task of a video that was removed meanwhile, or was lost too often, is not done again.
  parts: ({ details }, { videos, tasks }) => {
    const task = tasks.find(({ id }) => id === details['taskId']);
    const video = videos.find(({ id }) => id === task?.videoId);
    return video?.status === 'ready' && !video.deleted ? [details] : [];
  },
  at: 'task.stored',
  isSame: (part, details) =>
    details['taskId'] === part['taskId'] && Number(details['fence']) > Number(part['fence']),
  what: ({ taskId }) => `task ${String(taskId)}`,
};

const redoings: Partial<Record<Phase, Redoing>> = {
  'outbox.read': outboxRows,
  'outbox.published': outboxRows,
  'message.handled': message,
  'task.claimed': message,
  'task.stored': attempt,
};

/**
 * What a kill left between two steps must be done again by another process, since the second step says that the first
 * was done. Where nobody does it again, the steps came in the wrong order: a kill at the wrong moment loses work then,
 * whether or not something else mends it. @returns what was not, as sentences for people
 */
export const notRedone = (
  reached: readonly PhaseReached[],
  record: Pick<RecordKept, 'videos' | 'tasks'>,
): string[] =>
  reached
    .filter(({ order }) => order?.signal === 'SIGKILL')
    .flatMap((killed) => {
      const redoing = redoings[killed.phase];
      if (redoing === undefined) return [];
      const { parts, at, isSame, what } = redoing;
      const others = reached.filter(({ pid, phase }) => phase === at && pid !== killed.pid);
      return parts(killed, record)
        .filter((part) => !others.some(({ details }) => isSame(part, details)))
        .map((part) => `${what(part)} did not come again after the kill at ${killed.phase}`);
    });
