import { type Ledger } from './ledger.ts';
import { type RecordKept, type World } from './world.ts';

export const queueRules = {
  'no upload is stuck': ({ uploads }: RecordKept): string[] =>
    uploads
      .filter(({ state }) => state === 'open' || state === 'completing')
      .map(({ id, state }) => `${id} is ${state}`),

  'no encode is stuck': ({ jobs, tasks }: RecordKept): string[] => [
    ...jobs.filter(({ state }) => state === 'running').map(({ id }) => `job ${id} is running`),
    ...tasks
      .filter(({ status }) => status === 'queued' || status === 'processing')
      .map(({ id, status }) => `task ${id} is ${status}`),
  ],

  /** Heartbeats come and go. */
  'the outbox is empty': ({ outbox }: RecordKept): string[] =>
    outbox
      .filter(({ parked, heartbeat }) => !parked && !heartbeat)
      .map(({ topic, key }) => `${key} for ${topic} is waiting`),

  /** What no bus takes, and nothing else, is set aside with its reason. */
  'what is parked is explained': ({ outbox }: World, { unsendable }: Ledger): string[] => {
    const parked = outbox.filter((row) => row.parked);
    return [
      ...parked.filter(({ key }) => !unsendable.includes(key)).map(({ key }) => `${key} is parked`),
      ...parked.filter(({ lastError }) => lastError === null).map(({ key }) => `${key} has no reason`),
      ...unsendable
        .filter((key) => !parked.some((row) => row.key === key))
        .map((key) => `${key} is not parked`),
    ];
  },

  'no delivery is stuck': ({ deliveries, queued }: RecordKept): string[] => [
    ...deliveries.filter(({ status }) => status === 'pending').map(({ id }) => `${id} is pending`),
    ...queued.map(({ deliveryId, where }) => `${deliveryId} is in the ${where}`),
  ],

  'no message is stuck': ({ lag }: World): string[] =>
    [...lag].filter(([, messages]) => messages > 0).map(([of, messages]) => `${messages} wait for ${of}`),

  /** What nobody can read, and nothing else, is dead. */
  'what is dead is explained': ({ dead }: World, { poison }: Ledger): string[] =>
    [...dead].flatMap(([topic, messages]) => {
      const expected = poison.get(topic) ?? 0;
      return messages === expected ? [] : [`${messages} messages of ${topic} are dead, not ${expected}`];
    }),
};

/** What of the record is still under way. */
export const underWay = (record: RecordKept): string[] =>
  (
    ['no upload is stuck', 'no encode is stuck', 'the outbox is empty', 'no delivery is stuck'] as const
  ).flatMap((rule) => queueRules[rule](record));
