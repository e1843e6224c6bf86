import { type KeyObject } from 'node:crypto';
import {
  type Bell,
  type Clock,
  inSpan,
  type Logger,
  type Loop,
  markFailed,
  reachPhase,
} from '@millrace/platform';
import {
  type AttemptResult,
  claimDeliveries,
  type ClaimedDelivery,
  type Database,
  releaseClaims,
  type WebhookWorker,
} from '@millrace/store';
import { type WebhooksConfig } from '../config.ts';
import { type Outcome, type Sender } from '../sender/sender.ts';
import { type Recorder } from './recorder.ts';
import { type Reporter } from './report.ts';
import { settle } from './settle.ts';

export interface DelivererDeps {
  config: WebhooksConfig;
  store: Database;
  worker: WebhookWorker;
  sender: Sender;
  /** The key of the endpoint's signatures, of what the record keeps. */
  openKey: (claim: ClaimedDelivery) => KeyObject;
  recorder: Recorder;
  reporter: Reporter;
  /** Rung when there may be something to claim. */
  bell: Bell;
  clock: Clock;
  logger: Logger;
}

/** How often an idle deliverer looks by itself: a notification may be lost, a delivery may not. */
const sweepMs = 1_000;
const largestClaim = 500;
/** Between looks that find something, in milliseconds. */
const gatherMs = 15;
/** What the lease must have left over an attempt's own time when it begins. */
const leaseMarginMs = 1_000;

/**
 * Claims what is due and attempts it at once: what is claimed is under way, nothing waits here. An attempt keeps
 * its place until its result is in the record.
 */
export class Deliverer {
  readonly #deps: DelivererDeps;
  readonly #attempts = new Map<string, Promise<void>>();
  /** Claims that are not settled, and whether their endpoint was in doubt. */
  readonly #places = new Map<string, boolean>();
  #doubtful = 0;
  #closed = false;
  #after = '';
  /** The last look left something behind for want of places. */
  #short = false;
  /** Slots were freed that nobody looked at. */
  #vacated = false;

  constructor(deps: DelivererDeps) {
    this.#deps = deps;
  }

  get inFlight(): number {
    return this.#places.size;
  }

  /** The claims that are not settled: their results are to come, or on their way into the record. */
  get holds(): string[] {
    return [...this.#places.keys()];
  }

  /** Claims whenever the bell rings, when something falls due, and each second. */
  loop(): Loop {
    return {
      name: 'deliver',
      run: async (signal, done) => {
        while (!signal.aborted) {
          const { more, dueInMs, begun } = await this.#look();
          done();
          if (more && this.#room() > 0) continue;
          // A look costs as much for one delivery as for many: under load it waits for more.
          if (begun > 0) await this.#deps.clock.sleep(gatherMs, signal).catch(() => undefined);
          await this.#deps.bell.wait(Math.min(sweepMs, Math.max(1, dueInMs ?? sweepMs)), signal);
        }
      },
    };
  }

  /** Frees the places of attempts whose results are settled. */
  settled(results: readonly AttemptResult[]): void {
    for (const { claim } of results) this.#leave(claim.claimId);
    if (this.#short || this.#vacated) this.#deps.bell.ring();
    this.#vacated = false;
  }

  /** Whether an endpoint's next delivery may follow at once: not when others wait for a place, nor at the end. */
  get goesOn(): boolean {
    return !this.#closed && !this.#short;
  }

  /**
   * Begins what was claimed as other attempts were recorded.
   * @param claimed.askedAt when the record was asked, in milliseconds of `performance.now`
   * @param claimed.vacated whether slots were freed without a look at what waits for them
   */
  async goOn(
    next: readonly ClaimedDelivery[],
    { askedAt, vacated }: { askedAt: number; vacated: boolean },
  ): Promise<void> {
    this.#vacated ||= vacated;
    await this.#beginAll(next, askedAt);
  }

  /** Takes nothing new and waits until every attempt has ended; each is bounded in time. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#attempts.values());
  }

  #room(): number {
    return this.#deps.config.WEBHOOKS_IN_FLIGHT - this.#places.size;
  }

  async #look(): Promise<{ more: boolean; dueInMs: number | null; begun: number }> {
    const { config, store, worker } = this.#deps;
    const limit = Math.min(this.#room(), largestClaim);
    this.#short = limit <= 0;
    if (limit <= 0 || this.#closed) return { more: false, dueInMs: null, begun: 0 };
    const doubtfulLimit = Math.max(0, Math.floor(config.WEBHOOKS_IN_FLIGHT / 2) - this.#doubtful);
    const askedAt = performance.now();
    const { deliveries, after, more, dueInMs } = await claimDeliveries(store, {
      worker,
      leaseMs: config.WEBHOOKS_LEASE_MS,
      after: this.#after,
      limit,
      doubtfulLimit,
    });
    this.#after = after;
    await this.#beginAll(deliveries, askedAt);
    this.#short = more && this.#room() <= 0;
    return { more, dueInMs, begun: deliveries.length };
  }

  async #beginAll(claims: readonly ClaimedDelivery[], askedAt: number): Promise<void> {
    const { config, store } = this.#deps;
    // A process that was held up since it asked must not begin what may be another's before it ends.
    const late =
      performance.now() - askedAt > config.WEBHOOKS_LEASE_MS - config.WEBHOOKS_TIMEOUT_MS - leaseMarginMs;
    if (!late && !this.#closed) for (const claim of claims) this.#begin(claim);
    else if (claims.length > 0) await releaseClaims(store, claims);
  }

  #begin(claim: ClaimedDelivery): void {
    const doubtful = claim.failures !== 0;
    this.#places.set(claim.claimId, doubtful);
    if (doubtful) this.#doubtful += 1;
    this.#attempts.set(claim.claimId, this.#attempt(claim));
  }

  #leave(claimId: string): void {
    if (this.#places.get(claimId) === true) this.#doubtful -= 1;
    this.#places.delete(claimId);
  }

  async #attempt(claim: ClaimedDelivery): Promise<void> {
    const startedAt = performance.now();
    const outcome = await traced(claim, () => this.#send(claim));
    const durationMs = performance.now() - startedAt;
    const { eventId, endpointId } = claim;
    reachPhase('webhook.sent', () => ({ eventId, endpointId, status: outcome.status }));
    this.#attempts.delete(claim.claimId);
    const result = settle(claim, outcome, durationMs);
    this.#deps.reporter.attempted(claim, result);
    this.#deps.recorder.add(result);
  }

  /** Never rejects: what goes wrong here is as good a failure as a receiver's. */
  async #send(claim: ClaimedDelivery): Promise<Outcome> {
    const { sender, openKey, logger } = this.#deps;
    const { url, redelivery } = claim;
    const body = Buffer.from(claim.body);
    try {
      return await sender.send({ url, key: openKey(claim), body, redelivery });
    } catch (error) {
      logger.error({ err: error, deliveryId: claim.deliveryId }, 'webhook attempt broke');
      return { delivered: false, status: null, error: 'could not be sent', retryAfterMs: null };
    }
  }
}

/** One attempt as a span of the trace that the event is of; a delivery of no trace gets none. */
function traced(claim: ClaimedDelivery, send: () => Promise<Outcome>): Promise<Outcome> {
  const { deliveryId, endpointId, eventId, eventType, attempts, trace } = claim;
  if (trace === null) return send();
  const attributes = { deliveryId, endpointId, eventId, eventType, attempt: attempts + 1 };
  return inSpan('deliver webhook', { kind: 'CLIENT', attributes, from: trace }, async (span) => {
    const outcome = await send();
    if (outcome.status !== null) span.setAttribute('http.response.status_code', outcome.status);
    if (!outcome.delivered) markFailed(span, 'not delivered');
    return outcome;
  });
}
