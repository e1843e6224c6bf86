import { type Queryable } from './db.ts';

/** One request to count. */
export interface RateHit {
  /** What is limited: `v1`, `auth`, `demo`. */
  bucket: string;
  /** Who counts as one client. */
  client: string;
  /** Start of the window, the same for all buckets. */
  startsAt: Date;
  /** How many requests the window has room for. */
  most: number;
}

export interface RateWindows {
  /**
   * Counts a request; gives how many there are now in its window, this one included, over all replicas. Far below the
   * limit the answer is there at once, and the record hears of the request a moment later; else it is asked first.
   */
  hit(hit: RateHit): number | Promise<number>;
  /** Tells the record what it has not heard. */
  close(): Promise<void>;
}

interface Window {
  /** Over all replicas, when the record last said so. */
  counted: number;
  /** When that was. */
  heardAt: number;
  /** Requests let through since. */
  since: number;
}

/** What the record is to hear of one window. */
interface News {
  hit: RateHit;
  /** Requests let through already. */
  passed: number;
  /** Requests that wait for their count. */
  waiting: { resolve: (count: number) => void; reject: (error: unknown) => void }[];
}

/**
 * Up to this part of a limit requests are let through at once, if the limit is not lower than this and what the record
 * said is not older: who would pass the limit before a replica hears of it would have to send the other 900 requests
 * in a second, and gains what that replica lets through until it tells (`tellEveryMs`).
 */
const farBelow = 1 / 4;
const lowestLimit = 1_000;
const freshMs = 1_000;
/** How long the record may not hear of a request, in milliseconds. */
const tellEveryMs = 50;
/** Windows that are remembered; of others the record is asked each time. */
const mostWindows = 50_000;

const isFarBelow = ({ counted, heardAt, since }: Window, most: number): boolean =>
  most >= lowestLimit && counted + since + 1 <= most * farBelow && performance.now() - heardAt < freshMs;

/**
 * Counts in the record, with one statement at a time: what comes while one is under way goes into the next, so that a
 * flood costs few statements.
 * @param onLost requests that were let through and could not be counted
 */
export function createRateWindows(
  db: Queryable,
  onLost: (passed: number, error: unknown) => void,
): RateWindows {
  const windows = new Map<string, Window>();
  let news = new Map<string, News>();
  let telling: Promise<void> | null = null;
  let timer: NodeJS.Timeout | undefined;
  let startsAt = 0;

  const run = async (): Promise<void> => {
    do {
      clearTimeout(timer);
      timer = undefined;
      const told = news;
      news = new Map();
      await countNews(db, told).then(
        (counts) => {
          settle(told, counts);
        },
        (error: unknown) => {
          for (const [key, { passed, waiting }] of told) {
            windows.delete(key);
            if (passed > 0) onLost(passed, error);
            for (const { reject } of waiting) reject(error);
          }
        },
      );
    } while ([...news.values()].some(({ waiting }) => waiting.length > 0));
    telling = null;
  };
  const tell = (): Promise<void> => {
    if (news.size > 0) telling ??= run();
    return telling ?? Promise.resolve();
  };

  /** Remembers what the record said, then tells those who wait: their next request knows it. */
  const settle = (told: ReadonlyMap<string, News>, counts: ReadonlyMap<string, number>): void => {
    const heardAt = performance.now();
    for (const [key, counted] of counts) {
      const { waiting = [] } = told.get(key) ?? {};
      if (windows.size < mostWindows || windows.has(key)) {
        windows.set(key, { counted, heardAt, since: news.get(key)?.passed ?? 0 });
      }
      for (const [index, { resolve }] of waiting.entries()) resolve(counted - waiting.length + index + 1);
    }
  };

  const newsOf = (key: string, hit: RateHit): News => {
    const known = news.get(key);
    if (known !== undefined) return known;
    const first = { hit, passed: 0, waiting: [] };
    news.set(key, first);
    return first;
  };

  return {
    hit: (hit) => {
      if (hit.startsAt.getTime() !== startsAt) {
        startsAt = hit.startsAt.getTime();
        windows.clear();
      }
      const key = keyOf({ bucket: hit.bucket, client: hit.client, startsAt });
      const window = windows.get(key);
      if (window !== undefined && isFarBelow(window, hit.most)) {
        window.since++;
        newsOf(key, hit).passed++;
        timer ??= setTimeout(() => void tell(), tellEveryMs).unref();
        return window.counted + window.since;
      }
      return new Promise((resolve, reject) => {
        newsOf(key, hit).waiting.push({ resolve, reject });
        void tell();
      });
    },
    close: async () => {
      await tell();
      await tell();
      clearTimeout(timer);
    },
  };
}

/** Adds the news to the record; resolves with what each of these windows now counts. */
async function countNews(db: Queryable, news: ReadonlyMap<string, News>): Promise<Map<string, number>> {
  // One order for all replicas: two statements never wait for each other's rows.
  const sorted = [...news].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each);
  const { rows } = await db.query<{ bucket: string; client: string; startsAt: number; hits: number }>(
    `insert into rate_windows as w (bucket, client, starts_at, hits)
     select * from unnest($1::text[], $2::text[], $3::timestamptz[], $4::integer[])
     on conflict (bucket, client, starts_at) do update set hits = w.hits + excluded.hits
     returning bucket, client, extract(epoch from starts_at)::float8 * 1000 as "startsAt", hits`,
    [
      sorted.map(({ hit }) => hit.bucket),
      sorted.map(({ hit }) => hit.client),
      sorted.map(({ hit }) => hit.startsAt),
      sorted.map(({ passed, waiting }) => passed + waiting.length),
    ],
    'rate-hit',
  );
  return new Map(rows.map((row) => [keyOf(row), row.hits]));
}

/** @param window.startsAt in milliseconds */
const keyOf = ({ bucket, client, startsAt }: { bucket: string; client: string; startsAt: number }): string =>
  `${bucket} ${startsAt} ${client}`;
