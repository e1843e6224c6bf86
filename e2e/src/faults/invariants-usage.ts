import { type Ledger, type View } from './ledger.ts';
import { type World } from './world.ts';

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);

/** Views by what makes one count: the same segment of the same token counts once. */
const distinct = (views: readonly View[]): View[] => [
  ...new Map(views.map((view) => [`${view.token} ${view.segment}`, view])).values(),
];

export const usageRules = {
  /** The sums are what the reservations add up to, and those what stands in the record: each video once. */
  'stored and uploaded time count once': ({ usage, reservations, videos }: World): string[] => {
    const standing = reservations.filter((each) => each.standing);
    const of = (kind: string, accountId: string): number =>
      sum(standing.filter((r) => r.kind === kind && r.accountId === accountId).map((r) => r.amountMs));
    const sums = usage.flatMap(({ accountId, storedMs, uploadMs }) => {
      const [stored, uploaded] = [of('stored', accountId), of('upload', accountId)];
      return [
        ...(storedMs === stored ? [] : [`${storedMs} ms stored, ${stored} reserved`]),
        ...(uploadMs === uploaded ? [] : [`${uploadMs} ms uploaded, ${uploaded} charged`]),
      ];
    });
    const each = videos.flatMap(({ id, status, deleted, durationMs }) => {
      const reserved = standing.filter((r) => r.videoId === id && r.kind === 'stored').map((r) => r.amountMs);
      const isKept = status === 'ready' && !deleted;
      const isRight = isKept ? near(reserved, durationMs ?? 0) : reserved.length === 0;
      return isRight ? [] : [`${id} (${deleted ? 'deleted' : status}) has ${String(reserved)} ms reserved`];
    });
    return [...sums, ...each];
  },

  /** What was watched counts once, and nothing counts that was not. */
  'watched time counts once': ({ usage, watched }: World, { accountId, views }: Ledger): string[] => {
    const lengths = new Map(views.map(({ videoId, segment, ms }) => [`${videoId} ${segment}`, ms]));
    const sent = distinct(views);
    const counted = watched.flatMap(({ videoId, segments }) =>
      segments.map((segment) => ({ videoId, segment, ms: lengths.get(`${videoId} ${segment}`) })),
    );
    const problems = counted
      .filter(({ ms }) => ms === undefined)
      .map(({ videoId, segment }) => `nobody watched segment ${segment} of ${videoId}`);
    for (const { videoId, segment } of sent) {
      const count = (of: readonly { videoId: string; segment: number }[]): number =>
        of.filter((each) => each.videoId === videoId && each.segment === segment).length;
      if (count(counted) > count(sent)) problems.push(`segment ${segment} of ${videoId} counts twice`);
      if (count(counted) < count(sent.filter(({ certain }) => certain)))
        problems.push(`segment ${segment} of ${videoId} does not count`);
    }
    const total = usage.find((each) => each.accountId === accountId)?.watchedMs ?? 0;
    const marked = sum(counted.map(({ ms }) => ms ?? 0));
    return Math.abs(total - marked) < 1
      ? problems
      : [...problems, `${total} ms watched, ${marked} in what is marked as seen`];
  },
};

/** A planned length and what plays differ by less than a frame's time. */
const near = ([amount, ...more]: readonly number[], ms: number): boolean =>
  amount !== undefined && more.length === 0 && Math.abs(amount - ms) < 100;
