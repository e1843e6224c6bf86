import {
  type AccountPlaybackState,
  type PlaybackStateResponse,
  type ProjectPlaybackState,
  type VideoPlaybackState,
} from '@millrace/contract';
import { type Clock, type Logger, type Metrics } from '@millrace/platform';
import { type PlaybackView } from '../checks.ts';
import { GenerationCache } from '../generation-cache.ts';
import { createTailProgress } from './confirmation.ts';
import { type Confirmation, keepNewer, type Known, KnownStates, newer } from './known-states.ts';
import { type RecordClient } from './record-client.ts';

/** States are believed for this long after their last confirmation (contract CDN-339). */
const believedMs = 60_000;
/** Past this age, three heartbeats missed, a state is read again by the internal route while it is used. */
const refreshMs = 15_000;
/** After a read that failed, the same video is not read again for this long. */
const retryMs = 1_000;
/** Reads in flight; more would only wait for each other. */
const maximumReads = 1_024;
/** How often a read is repeated because something unreadable changed meanwhile. */
const maximumAttempts = 5;

export interface PlaybackStatesDeps {
  record: RecordClient;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  /** Bound of the cached states' memory, in bytes. */
  maximumBytes: number;
}

/**
 * What the CDN knows of videos, accounts and projects: read from the record on first request, then kept up to date and
 * confirmed by the tail of the state topic, with the internal route as second, independent confirmation.
 */
export interface PlaybackStates {
  /**
   * The states of a video, its account and its project, at once when they are known and confirmed. Null when nothing has
   * confirmed them for 60 s and the record cannot be read: then nobody may decide by them.
   */
  view(videoId: string, nowMs: number): PlaybackView | Promise<PlaybackView | null>;
  videoChanged(state: VideoPlaybackState): void;
  accountChanged(state: AccountPlaybackState): void;
  projectChanged(state: ProjectPlaybackState): void;
  /** The key changed in a way that could not be read: what is known of it is dropped. */
  unreadable(key: string): void;
  /** Changes may have been missed: everything is read again before it is believed. */
  gap(): void;
  /** The tail is being followed from now on; until then nothing that is read counts as followed. */
  following(partitions: number): void;
  /** The tail is followed no longer. */
  unfollowed(): void;
  partitionSeen(partition: number): void;
  heartbeat(partition: number, atMs: number): void;
  /**
   * The instant (database time, milliseconds) up to which this process decides by every change; -Infinity before that
   * is known.
   */
  confirmedUpToMs(): number;
  /** Seconds since either confirmation was last at work; counted from the start while neither has been. */
  ages(): { tailSeconds: number; recordSeconds: number };
}

/** A read of one video in flight, with what the tail said meanwhile. */
interface Reading {
  result: Promise<PlaybackView | null>;
  videos: Map<string, VideoPlaybackState>;
  accounts: Map<string, AccountPlaybackState>;
  projects: Map<string, ProjectPlaybackState>;
  /** Changes that could not be read, and gaps: an answer that may lack one is asked for once more. */
  unknownChanges: number;
}

/** What is known of a video, with what its playing depends on. */
interface KnownView {
  video: Known<VideoPlaybackState>;
  account: Known<AccountPlaybackState> | null;
  project: Known<ProjectPlaybackState> | null;
}

export function createPlaybackStates(deps: PlaybackStatesDeps): PlaybackStates {
  return new States(deps);
}

class States implements PlaybackStates {
  readonly #deps: PlaybackStatesDeps;
  readonly #videos: KnownStates<VideoPlaybackState>;
  readonly #accounts: KnownStates<AccountPlaybackState>;
  readonly #projects: KnownStates<ProjectPlaybackState>;
  readonly #readings = new Map<string, Reading>();
  readonly #retryAtMs = new GenerationCache<number>(1024 * 1024);
  readonly #progress = createTailProgress();
  readonly #startedMs: number;
  readonly #reads: ReturnType<typeof countReads>;
  #following = false;
  /** Something was read from the record, and may be believed. */
  #hasRead = false;
  /** After a gap: what was known before it may still be believed for a time, though more has been read since. */
  #gap = { upToMs: Infinity, untilMs: -Infinity };
  #recordReadMs: number;

  constructor(deps: PlaybackStatesDeps) {
    this.#deps = deps;
    this.#reads = countReads(deps.metrics);
    this.#videos = new KnownStates(deps.maximumBytes / 2);
    this.#accounts = new KnownStates(deps.maximumBytes / 4);
    this.#projects = new KnownStates(deps.maximumBytes / 4);
    this.#startedMs = this.#nowMs();
    this.#recordReadMs = this.#startedMs;
  }

  view(videoId: string, nowMs: number): PlaybackView | Promise<PlaybackView | null> {
    const known = this.#known(videoId);
    if (known === null) return this.#read(videoId, nowMs);
    const age = this.#ageMs(known, nowMs);
    const { video, account, project } = known;
    if (video.suspect || account?.suspect === true || project?.suspect === true || age >= believedMs) {
      return this.#read(videoId, nowMs).then((read) => read ?? this.#stillBelieved(videoId));
    }
    if (age >= refreshMs) void this.#read(videoId, nowMs);
    return viewOf(known);
  }

  /** What is known after a read that failed: that took its time, and a change may have come meanwhile. */
  #stillBelieved(videoId: string): PlaybackView | null {
    const known = this.#known(videoId);
    return known !== null && this.#ageMs(known, this.#nowMs()) < believedMs ? viewOf(known) : null;
  }

  videoChanged(state: VideoPlaybackState): void {
    this.#videos.change(state.videoId, state);
    for (const { videos } of this.#readings.values()) keepNewer(videos, state.videoId, state);
  }

  accountChanged(state: AccountPlaybackState): void {
    this.#accounts.change(state.accountId, state);
    for (const { accounts } of this.#readings.values()) keepNewer(accounts, state.accountId, state);
  }

  projectChanged(state: ProjectPlaybackState): void {
    this.#projects.change(state.projectId, state);
    for (const { projects } of this.#readings.values()) keepNewer(projects, state.projectId, state);
  }

  unreadable(key: string): void {
    for (const states of [this.#videos, this.#accounts, this.#projects]) states.drop(key);
    for (const reading of this.#readings.values()) reading.unknownChanges++;
  }

  gap(): void {
    const readUpToMs = this.#progress.readUpToMs();
    if (this.#hasRead) this.#gap = { upToMs: this.confirmedUpToMs(), untilMs: this.#nowMs() + believedMs };
    for (const states of [this.#videos, this.#accounts, this.#projects]) states.suspectAll(readUpToMs);
    for (const reading of this.#readings.values()) reading.unknownChanges++;
  }

  following(partitions: number): void {
    this.#progress.expectPartitions(partitions);
    this.gap();
    this.#following = true;
  }

  unfollowed(): void {
    this.gap();
    this.#following = false;
  }

  partitionSeen(partition: number): void {
    this.#progress.expectPartitions(partition + 1);
  }

  heartbeat(partition: number, atMs: number): void {
    this.#progress.heartbeat(partition, atMs, this.#nowMs());
  }

  confirmedUpToMs(): number {
    const readUpToMs = this.#progress.readUpToMs();
    const { upToMs, untilMs } = this.#gap;
    return this.#nowMs() < untilMs ? Math.min(upToMs, readUpToMs) : readUpToMs;
  }

  ages(): { tailSeconds: number; recordSeconds: number } {
    const nowMs = this.#nowMs();
    const since = (ms: number): number => Math.max(0, nowMs - Math.max(ms, this.#startedMs)) / 1000;
    return { tailSeconds: since(this.#progress.readUpToMs()), recordSeconds: since(this.#recordReadMs) };
  }

  /** What is known of a video with its account and project; null when a part has to be read first. */
  #known(videoId: string): KnownView | null {
    const video = this.#videos.get(videoId);
    if (video === undefined) return null;
    // What cannot play needs no account; a deleted video's may be gone.
    if (video.state?.status !== 'ready') return { video, account: null, project: null };
    const { accountId, projectId } = video.state;
    const account = this.#accounts.get(accountId);
    const project = projectId === null ? null : this.#projects.get(projectId);
    return account === undefined || project === undefined ? null : { video, account, project };
  }

  #ageMs({ video, account, project }: KnownView, nowMs: number): number {
    const tailMs = this.#progress.readUpToMs();
    const confirmedMs = (known: Known<unknown> | null): number => {
      if (known === null) return Infinity;
      return known.tailed ? Math.max(known.confirmedMs, tailMs) : known.confirmedMs;
    };
    const age = nowMs - Math.min(confirmedMs(video), confirmedMs(account), confirmedMs(project));
    // A clock that was set back would make everything look fresh for as long as it was ahead.
    return age < -refreshMs ? Infinity : age;
  }

  /** Reads a video's states, once for any number of requests that wait. Null when the record cannot be read. */
  #read(videoId: string, nowMs: number): Promise<PlaybackView | null> {
    const running = this.#readings.get(videoId);
    if (running !== undefined) return running.result;
    if (nowMs < (this.#retryAtMs.get(videoId) ?? -Infinity) || this.#readings.size >= maximumReads) {
      return Promise.resolve(null);
    }
    const reading: Reading = {
      result: Promise.resolve(null),
      videos: new Map(),
      accounts: new Map(),
      projects: new Map(),
      unknownChanges: 0,
    };
    this.#readings.set(videoId, reading);
    reading.result = this.#readUntilCurrent(videoId, reading)
      .catch((error: unknown) => {
        this.#deps.logger.warn({ err: error, videoId }, 'could not read playback state');
        this.#retryAtMs.set(videoId, this.#nowMs() + retryMs, 200);
        return null;
      })
      .finally(() => this.#readings.delete(videoId));
    return reading.result;
  }

  async #readUntilCurrent(videoId: string, reading: Reading): Promise<PlaybackView> {
    for (let attempt = 1; attempt <= maximumAttempts; attempt++) {
      const { unknownChanges } = reading;
      const startedMs = this.#nowMs();
      const tailed = this.#following;
      const answer = await this.#deps.record.read(videoId).catch((error: unknown) => {
        this.#reads.inc({ outcome: 'failed' });
        throw error;
      });
      this.#reads.inc({ outcome: 'ok' });
      this.#recordReadMs = startedMs;
      if (reading.unknownChanges !== unknownChanges) continue;
      return this.#keep(videoId, answer, reading, { confirmedMs: startedMs, tailed });
    }
    throw new Error('the state changed unreadably again and again while it was read');
  }

  /** A change that came while the record was read may be newer than the answer; the higher version wins. */
  #keep(
    videoId: string,
    answer: PlaybackStateResponse,
    { videos, accounts, projects }: Reading,
    confirmation: Confirmation,
  ): PlaybackView {
    this.#hasRead = true;
    const { accountId } = answer.account ?? {};
    const projectId = answer.video?.projectId ?? null;
    const video = newer(answer.video, videos.get(videoId) ?? null);
    const account = accountId === undefined ? null : newer(answer.account, accounts.get(accountId) ?? null);
    const project = projectId === null ? null : newer(answer.project, projects.get(projectId) ?? null);
    return {
      video: this.#videos.put(videoId, video, confirmation).state,
      account: account && this.#accounts.put(account.accountId, account, confirmation).state,
      // That the record says nothing of a project is known too, else it would be asked for each request.
      project: projectId === null ? null : this.#projects.put(projectId, project, confirmation).state,
    };
  }

  #nowMs(): number {
    return this.#deps.clock.now().getTime();
  }
}

const viewOf = ({ video, account, project }: KnownView): PlaybackView => ({
  video: video.state,
  account: account?.state ?? null,
  project: project?.state ?? null,
});

function countReads(metrics: Metrics): { inc(labels: { outcome: 'ok' | 'failed' }): void } {
  const reads = metrics.counter(
    'millrace_cdn_state_reads_total',
    'Reads of playback state by the internal route, by outcome.',
    ['outcome'],
  );
  // A series that is there before its first failure: else no rate sees that one.
  for (const outcome of ['ok', 'failed']) reads.inc({ outcome }, 0);
  return reads;
}
