import { setTimeout as pause } from 'node:timers/promises';
import { waitFor } from '@millrace/testing';
import { type Customer, signUp } from '../demo/customer.ts';
import { type Chance } from '../testing/random.ts';
import { chooseFaults, type Fault, type FaultDeps, openingFault } from './faults.ts';
import { makeFilms } from './films.ts';
import { underWay } from './invariants-queues.ts';
import { type Ledger } from './ledger.ts';
import { type Copier, copyMessages, poison, unsendable } from './messages.ts';
import { type Receivers, startReceivers } from './receivers.ts';
import { sweep } from './sweep.ts';
import { type Theatre } from './theatre.ts';
import { type Time } from './time.ts';
import { type Film, upload } from './uploader.ts';
import { watch } from './viewer.ts';
import { readLag, readRecord } from './world.ts';

/** What the faults led to, as far as it came. */
export interface Campaign {
  ledger: Ledger;
  /** In the order of their ends, and how long each took until what it hit was there again. */
  faults: { name: string; seconds: number }[];
  stages: { name: string; seconds: number }[];
  /** How many messages of each topic were sent once more. */
  copied: ReadonlyMap<string, number>;
  /** Messages that were not, when it was last looked; null before. */
  uncopied: number | null;
  /** What did not end in time, and why. */
  late: string[];
}

const films = 30;

export const newCampaign = (): Campaign => ({
  ledger: { accountId: '', uploads: [], receipts: [], views: [], poison: new Map(), unsendable: [] },
  ...{ faults: [], stages: [], copied: new Map(), uncopied: null, late: [] },
});

/**
 * Lets all faults befall the service while a customer uploads thirty films and watches what is ready, every message
 * comes twice and some can be read by nobody; then waits until nothing is under way, and lets two days of sweeping
 * pass. Tells the campaign of each step at once. When the time is over before there is rest, it goes on: what is stuck
 * then is what the check finds.
 * @throws when a fault did not come, or did not pass in time
 */
export async function runCampaign(
  campaign: Campaign,
  theatre: Theatre,
  { chance, time }: { chance: Chance; time: Time },
): Promise<void> {
  const { ledger } = campaign;
  const receivers = await startReceivers();
  try {
    const customer = await signUp(theatre.service, 'pro', time.signal);
    await addEndpoints(receivers, customer);
    Object.assign(ledger, { accountId: customer.accountId, receipts: receivers.receipts });
    const copier = await copyMessages(theatre.bus);
    campaign.copied = copier.copied;
    const scene = { customer, ledger, signal: time.signal };
    const stage = async (name: string, work: () => Promise<void>): Promise<void> => {
      const startedAt = performance.now();
      await work().finally(() =>
        campaign.stages.push({ name, seconds: (performance.now() - startedAt) / 1_000 }),
      );
    };
    const inTime = (name: string, work: () => Promise<void>): Promise<void> =>
      stage(name, work).catch((error: unknown) => void campaign.late.push(`${name}: ${String(error)}`));
    const settle = (): Promise<void> => untilQuiet(theatre, { campaign, copier, time });

    await stage('faults', () => meetFaults(campaign, theatre, { chance, scene }));
    await inTime('the end of all work', settle);
    await inTime('watching', () => watchAll(theatre, scene));
    // It tells the bus what is left to tell.
    await theatre.stack.services.get('cdn')?.stop();
    await inTime('the end of all counting', settle);
    await copier.stop();
    await inTime('the sweep', () => sweep(theatre, time));
  } finally {
    await receivers.stop();
  }
}

async function addEndpoints(receivers: Receivers, customer: Customer): Promise<void> {
  await receivers.add(customer, { events: ['video.ready', 'video.failed'], moody: false });
  await receivers.add(customer, { events: ['video.ready'], moody: true });
}

interface Scene {
  customer: Customer;
  ledger: Ledger;
  signal: AbortSignal;
}

/**
 * The films of the campaign: each fault comes upon a good one that was just begun, so that it finds work to hit; the
 * others are begun with one fault or another.
 */
async function distribute(faults: number, chance: Chance): Promise<Film[][]> {
  const { good, text, sound } = await makeFilms();
  const odd: Film[] = [
    text,
    text,
    sound,
    sound,
    { ...good, takenBack: 'upload' },
    { ...good, takenBack: 'video' },
  ];
  const begun = Array.from({ length: faults }, () => [good]);
  const others = [...odd, ...Array.from({ length: films - faults - odd.length }, () => good)];
  for (const film of others) begun[chance.below(faults)]?.push(film);
  return begun;
}

async function meetFaults(
  { faults: met }: Campaign,
  theatre: Theatre,
  { chance, scene }: { chance: Chance; scene: Scene },
): Promise<void> {
  const { customer, ledger, signal } = scene;
  const lanes = chooseFaults(chance, {
    sendPoison: sendPoison(theatre, ledger),
    hasSmallScratch: theatre.scratch !== null,
  });
  const films = (await distribute(1 + lanes.flat().length, chance)).values();
  const [ended, failed] = [new AbortController(), new AbortController()];
  const until = AbortSignal.any([signal, failed.signal]);
  const uploads: Promise<unknown>[] = [];
  const run = async (lane: readonly Fault[]): Promise<void> => {
    for (const fault of lane) {
      const beginAll = (): void => {
        for (const film of films.next().value ?? []) uploads.push(orFail(begin(film)));
      };
      met.push(await meet(fault, { ...theatre, signal: until }, beginAll));
    }
  };
  const begin = async (film: Film): Promise<void> => {
    ledger.uploads.push(await upload(customer, film, until));
  };
  // The first failure ends the others: nothing of a campaign that failed goes on.
  const orFail = <T>(work: Promise<T>): Promise<T> => {
    const ending = work.catch((error: unknown) => {
      failed.abort(error);
      throw error;
    });
    // It is looked at below; until then it is nobody's.
    ending.catch(() => undefined);
    return ending;
  };
  const watching = orFail(watchNow(theatre, { ...scene, signal: until }, ended.signal));
  const opening = orFail(run([openingFault]));
  const running = lanes.map((lane) => orFail(opening.then(() => run(lane))));
  try {
    await Promise.all(running);
    await Promise.all(uploads);
    ended.abort();
    await watching;
  } finally {
    ended.abort();
    await Promise.allSettled([...running, ...uploads, watching]);
  }
}

/**
 * One fault, and how long it takes until what it hit is there again.
 * @param begin gives it something to hit, once its order is given
 */
async function meet(
  fault: Fault,
  deps: Omit<FaultDeps, 'taken'>,
  begin: () => void,
): Promise<Campaign['faults'][number]> {
  const startedAt = performance.now();
  try {
    const { order } = fault;
    const taken = order === undefined ? () => Promise.resolve(null) : await deps.phases.order(order);
    begin();
    await fault.happen({ ...deps, taken });
  } catch (error) {
    throw new Error(`${fault.name}: did not come, or did not pass`, { cause: error });
  }
  return { name: fault.name, seconds: (performance.now() - startedAt) / 1_000 };
}

/** Messages that nobody can read, and an outbox row that no bus takes. */
const sendPoison = ({ db, stack }: Theatre, ledger: Ledger): Fault => ({
  name: 'poison on every topic',
  happen: async () => {
    const keys = ['', 'nobody', ...ledger.uploads.slice(0, 2).map(({ videoId }) => videoId)];
    await poison(stack.servers.kafka.address, keys, ledger);
    const insert = (topic: string, key: string): Promise<unknown> =>
      db.query(`insert into outbox (topic, key, version, value) values ($1, $2, 1, '{}')`, [topic, key]);
    await unsendable(insert, ledger);
  },
});

const readyVideos = `select id from videos where status = 'ready' and deleted_at is null order by id`;

/** Watches each video as soon as it is ready, once. What the CDN has not told the bus when it is killed is lost. */
async function watchNow(
  { db }: Theatre,
  { customer, ledger, signal }: Scene,
  ended: AbortSignal,
): Promise<void> {
  const seen = new Set<string>();
  while (!ended.aborted) {
    // The record may be away.
    const { rows } = await db.query<{ id: string }>(readyVideos).catch(() => ({ rows: [] }));
    const next = rows.find(({ id }) => !seen.has(id));
    if (next === undefined) await pause(200, undefined, { signal });
    else {
      seen.add(next.id);
      ledger.views.push(...(await watch(customer, next.id, { certain: false, signal })));
    }
  }
}

/** Watches everything that is ready, when nothing happens any more. */
async function watchAll({ db }: Theatre, { customer, ledger, signal }: Scene): Promise<void> {
  const { rows } = await db.query<{ id: string }>(readyVideos);
  for (const { id } of rows) ledger.views.push(...(await watch(customer, id, { certain: true, signal })));
}

/** @throws when something is still under way at the end of the time */
async function untilQuiet(
  { db, bus }: Theatre,
  { campaign, copier, time }: { campaign: Campaign; copier: Copier; time: Time },
): Promise<void> {
  const isQuiet = async (): Promise<boolean> => {
    campaign.uncopied = await copier.left();
    if (campaign.uncopied > 0 || underWay(await readRecord(db)).length > 0) return false;
    return [...(await readLag(bus)).values()].every((messages) => messages === 0);
  };
  await waitFor(isQuiet, { timeoutMs: time.leftMs(), what: 'the end of all work' });
}
