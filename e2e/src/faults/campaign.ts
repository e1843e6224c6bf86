import { setTimeout as pause } from 'node:timers/promises';
import { waitFor } from '@millrace/testing';
import { type Customer, signUp } from '../demo/customer.ts';
import { type Chance } from '../testing/random.ts';
import { chooseFaults, type Fault, type FaultDeps, openingFault } from './faults.ts';
import { makeFilms } from './films.ts';
import { underWay } from './invariants-queues.ts';
import { type Ledger } from './ledger.ts';
import { copyMessages, poison, unsendable } from './messages.ts';
import { type Receivers, startReceivers } from './receivers.ts';
import { sweep } from './sweep.ts';
import { type Theatre } from './theatre.ts';
import { type Film, upload } from './uploader.ts';
import { watch } from './viewer.ts';
import { readLag, readRecord } from './world.ts';

/** What the faults led to. */
export interface Campaign {
  ledger: Ledger;
  /** In the order of their ends, and how long each took until what it hit was there again. */
  faults: { name: string; seconds: number }[];
  stages: { name: string; seconds: number }[];
  /** How many messages of each topic were sent once more. */
  copied: ReadonlyMap<string, number>;
}

const films = 30;
const settleMs = 180_000;

/**
 * Lets all faults befall the service while a customer uploads thirty films and watches what is ready, every message
 * comes twice and some can be read by nobody; then waits until nothing is under way, and lets two days of sweeping
 * pass.
 */
export async function runCampaign(theatre: Theatre, chance: Chance, signal: AbortSignal): Promise<Campaign> {
  const receivers = await startReceivers();
  try {
    const customer = await signUp(theatre.service, 'pro', signal);
    await addEndpoints(receivers, customer);
    const copier = await copyMessages(theatre.bus);
    const ledger: Ledger = {
      ...{ accountId: customer.accountId, uploads: [], receipts: receivers.receipts, views: [] },
      ...{ poison: new Map(), unsendable: [] },
    };
    const scene = { customer, ledger, signal };
    const stages: Campaign['stages'] = [];
    const stage = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
      const startedAt = performance.now();
      const result = await work();
      stages.push({ name, seconds: (performance.now() - startedAt) / 1_000 });
      return result;
    };
    const faults = await stage('faults', () => meetFaults(theatre, chance, scene));
    await stage('the end of all work', () => settle(theatre, copier.left));
    await stage('watching', () => watchAll(theatre, scene));
    // It tells the bus what is left to tell.
    await theatre.stack.services.get('cdn')?.stop();
    await stage('the end of all counting', () => settle(theatre, copier.left));
    await copier.stop();
    await stage('the sweep', () => sweep(theatre));
    return { ledger, faults, stages, copied: copier.copied };
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

async function meetFaults(theatre: Theatre, chance: Chance, scene: Scene): Promise<Campaign['faults']> {
  const { customer, ledger, signal } = scene;
  const lanes = chooseFaults(chance, {
    sendPoison: sendPoison(theatre, ledger),
    hasSmallScratch: theatre.scratch !== null,
  });
  const films = (await distribute(1 + lanes.flat().length, chance)).values();
  const [ended, failed] = [new AbortController(), new AbortController()];
  const until = AbortSignal.any([signal, failed.signal]);
  const uploads: Promise<unknown>[] = [];
  const met: Campaign['faults'] = [];
  const run = async (lane: readonly Fault[]): Promise<void> => {
    for (const fault of lane) {
      for (const film of films.next().value ?? []) uploads.push(orFail(begin(film)));
      met.push(await meet(fault, { ...theatre, signal: until }));
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
  return met;
}

/** One fault, and how long it takes until what it hit is there again. */
async function meet(fault: Fault, deps: FaultDeps): Promise<Campaign['faults'][number]> {
  const startedAt = performance.now();
  try {
    await fault.happen(deps);
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

/**
 * Waits until nothing is under way. When it takes too long the test goes on: what is stuck then is what the check
 * finds.
 */
async function settle({ db, bus }: Theatre, uncopied: () => Promise<number>): Promise<void> {
  const isQuiet = async (): Promise<boolean> => {
    if (underWay(await readRecord(db)).length > 0) return false;
    return [...(await readLag(bus)).values()].every((messages) => messages === 0) && (await uncopied()) === 0;
  };
  await waitFor(isQuiet, { timeoutMs: settleMs, what: 'the end of all work' }).catch(() => undefined);
}
