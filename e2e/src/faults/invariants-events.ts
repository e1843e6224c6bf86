import { type Ledger, type Receipt } from './ledger.ts';
import { type World } from './world.ts';

const duplicates = (names: readonly string[]): string[] => [
  ...new Set(names.filter((name, at) => names.indexOf(name) !== at)),
];

/** Each event with each endpoint that it is for. */
const owed = ({ events, endpoints }: World): { event: World['events'][number]; endpointId: string }[] =>
  events.flatMap((event) =>
    endpoints
      .filter((endpoint) => endpoint.events.includes(event.type))
      .map((endpoint) => ({ event, endpointId: endpoint.id })),
  );

const received = ({ receipts }: Ledger, endpointId: string, eventId: string): Receipt[] =>
  receipts.filter((receipt) => receipt.endpointId === endpointId && receipt.eventId === eventId);

export const eventRules = {
  /** One event for each end of a video: nobody holds any here. */
  'each end of a video is one event': ({ videos, events }: World): string[] =>
    videos.flatMap(({ id, status, deleted }) => {
      const types = events.filter(({ videoId }) => videoId === id).map(({ type }) => type);
      const ended = status === 'ready' || status === 'failed';
      const expected = ended ? [`video.${status}`] : [];
      // A video that was deleted may have ended before.
      if (String(types) === String(expected) || (deleted && types.length === 0)) return [];
      return [`${id} is ${status} and has the events ${types.join(', ') || 'none'}`];
    }),

  'each event came to each of its endpoints': (world: World, ledger: Ledger): string[] =>
    owed(world)
      .filter(({ event, endpointId }) => !received(ledger, endpointId, event.id).some((r) => r.accepted))
      .map(({ event, endpointId }) => `${event.id} never came to ${endpointId}`),

  /** Nothing comes that is no event, of another endpoint's, wrongly signed, or with other bytes. */
  'each receipt is of an event': (world: World, { receipts }: Ledger): string[] => {
    const bodies = new Map(
      owed(world).map(({ event, endpointId }) => [`${endpointId} ${event.id}`, event.body]),
    );
    return receipts.flatMap(({ endpointId, eventId, body, genuine }) => {
      const of = `${eventId} at ${endpointId}`;
      const expected = bodies.get(`${endpointId} ${eventId}`);
      if (expected === undefined) return [`${of} is no event that it is for`];
      if (!genuine) return [`${of} is not signed as it should be`];
      return body === expected ? [] : [`${of} has other bytes than the event`];
    });
  },

  /** The log says of each event and endpoint once that it was delivered, and knows of each attempt that came. */
  'the delivery log agrees': (world: World, ledger: Ledger): string[] => {
    const { deliveries } = world;
    const names = deliveries.map(({ eventId, endpointId }) => `${eventId} to ${endpointId}`);
    const due = new Set(owed(world).map(({ event, endpointId }) => `${event.id} to ${endpointId}`));
    return [
      ...duplicates(names).map((name) => `${name} is there twice`),
      ...names.filter((name) => !due.has(name)).map((name) => `${name} is not due`),
      ...[...due].filter((name) => !names.includes(name)).map((name) => `${name} is missing`),
      ...deliveries.flatMap(({ eventId, endpointId, status, attempts }) => {
        const came = received(ledger, endpointId, eventId);
        const isThere = came.some(({ accepted }) => accepted);
        return [
          ...((status === 'delivered') === isThere ? [] : [`${eventId} to ${endpointId} is ${status}`]),
          ...(attempts >= came.length
            ? []
            : [`${eventId} to ${endpointId} came ${came.length} times in ${attempts} attempts`]),
        ];
      }),
    ];
  },
};
