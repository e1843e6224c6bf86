import { type Queryable } from './db.ts';

/** One request to count. */
export interface RateHit {
  /** What is limited: `v1`, `auth`, `demo`. */
  bucket: string;
  /** Who counts as one client. */
  client: string;
  /** Start of the window. */
  startsAt: Date;
}

export interface RateWindows {
  /** Counts a request; resolves with how many there are now in its window, this one included, over all replicas. */
  hit(hit: RateHit): Promise<number>;
}

interface Waiting extends RateHit {
  resolve(count: number): void;
  reject(error: unknown): void;
}

/**
 * Counts in the record, exactly, with one statement at a time: what comes while one is under way goes into the next,
 * so that a flood costs few statements and a lone request one.
 */
export function createRateWindows(db: Queryable): RateWindows {
  let waiting: Waiting[] = [];
  let busy = false;

  const run = async (): Promise<void> => {
    busy = true;
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      await countBatch(db, batch);
    }
    busy = false;
  };
  return {
    hit: (hit) =>
      new Promise((resolve, reject) => {
        waiting.push({ ...hit, resolve, reject });
        if (!busy) void run();
      }),
  };
}

/** Settles every hit of the batch; never rejects. */
async function countBatch(db: Queryable, batch: readonly Waiting[]): Promise<void> {
  const windows = new Map<string, Waiting[]>();
  for (const hit of batch) {
    const key = keyOf(hit);
    windows.set(key, [...(windows.get(key) ?? []), hit]);
  }
  // One order for all replicas: two batches never wait for each other's rows.
  const sorted = [...windows].sort(([a], [b]) => (a < b ? -1 : 1));
  const firsts = sorted.flatMap(([, [first]]) => (first === undefined ? [] : [first]));
  try {
    const { rows } = await db.query<RateHit & { hits: number }>(
      `insert into rate_windows as w (bucket, client, starts_at, hits)
       select * from unnest($1::text[], $2::text[], $3::timestamptz[], $4::integer[])
       on conflict (bucket, client, starts_at) do update set hits = w.hits + excluded.hits
       returning bucket, client, starts_at as "startsAt", hits`,
      [
        firsts.map(({ bucket }) => bucket),
        firsts.map(({ client }) => client),
        firsts.map(({ startsAt }) => startsAt),
        sorted.map(([, hits]) => hits.length),
      ],
      'rate-hit',
    );
    for (const row of rows) {
      const hits = windows.get(keyOf(row)) ?? [];
      for (const [index, hit] of hits.entries()) hit.resolve(row.hits - hits.length + index + 1);
    }
  } catch (error) {
    for (const hit of batch) hit.reject(error);
  }
}

const keyOf = ({ bucket, client, startsAt }: RateHit): string => `${bucket} ${startsAt.getTime()} ${client}`;
