import { accountState, type CdnHarness, sample, startCdn, videoState } from '@millrace/cdn/testing';
import { type PlaybackClaims } from '@millrace/domain';
import { makeFilm } from './film.ts';
import { cdnHost, openTheatre, type Show, type Theatre } from './theatre.ts';

export { cdnHost, type Show } from './theatre.ts';

const filmSeconds = 60;

/** A theatre whose CDN has a film and a clock that stands. */
export interface Stage extends Theatre {
  harness: CdnHarness;
  open(options?: OpenOptions): Promise<Show>;
  /** The embed page's address, with a token good for an hour. */
  address(token?: string): string;
  /** Changes the film's state in the record and tells the CDN. */
  setState(status: 'ready' | 'held' | 'deleted'): Promise<void>;
  /** The same for its account. */
  setAccount(more: Parameters<typeof accountState>[0]): Promise<void>;
  /** A token for the film that lives this long. */
  token(seconds: number, more?: Partial<PlaybackClaims>): { token: string; expiresAt: string };
}

interface OpenOptions {
  /** Where the page stands; the token's domain unless told. */
  host?: string;
  token?: string;
  /** More parameters of the embed page: `lang=ar`. */
  query?: string;
  referrerPolicy?: 'no-referrer';
}

export async function openStage(): Promise<Stage> {
  const [harness, film] = await Promise.all([startCdn(), makeFilm(sample.videoId, filmSeconds)]);
  const { objects } = harness.store;
  await objects.put(film.indexKey, Buffer.from(JSON.stringify(film.index)));
  for (const [key, bytes] of film.objects) await objects.put(key, bytes);
  let version = 10;
  harness.record.videos.set(sample.videoId, videoState({ version, indexKey: film.indexKey }));
  await harness.beat();
  const theatre = await openTheatre(harness.cdn.listening);

  let tokens = 0;
  const stage: Stage = Object.assign(theatre, {
    harness,
    open: ({ host = sample.domain, token, query = '', referrerPolicy }: OpenOptions = {}) =>
      theatre.show(stage.address(token) + (query && `&${query}`), { host, referrerPolicy }),
    address: (token = stage.token(3_600).token) => `https://${cdnHost}/e/${sample.videoId}?token=${token}`,
    async setState(status: 'ready' | 'held' | 'deleted') {
      const state = videoState({ version: ++version, status, indexKey: film.indexKey });
      harness.record.videos.set(sample.videoId, state);
      await harness.publish({ v: 1, kind: 'video', state });
      await harness.clock.advance(1);
      await harness.beat();
    },
    async setAccount(more: Parameters<typeof accountState>[0]) {
      const state = accountState({ version: ++version, ...more });
      harness.record.accounts.set(sample.accountId, state);
      await harness.publish({ v: 1, kind: 'account', state });
      await harness.clock.advance(1);
      await harness.beat();
    },
    token(seconds: number, more: Partial<PlaybackClaims> = {}) {
      // No two are the same, or the browser would have in its cache what another test fetched.
      const expiresAt = new Date(harness.clock.now().getTime() + seconds * 1_000 + ++tokens);
      return { token: harness.token({ expiresAt, ...more }), expiresAt: expiresAt.toISOString() };
    },
    close: closeBoth(theatre, harness),
  });
  return stage;
}

function closeBoth({ close }: Theatre, harness: CdnHarness): () => Promise<void> {
  return async () => {
    await close();
    await harness.close();
  };
}
