import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { missingForKafka } from '../../../dev/kafka/jars.ts';
import { describeWith } from '../../../dev/real-part.ts';
import { missingForS3 } from '../../../dev/s3/versitygw.ts';
import { createChance, testSeed } from '../testing/random.ts';
import { newCampaign, runCampaign } from './campaign.ts';
import { unaskedEnds } from './ends.ts';
import { fullDisk, namedPhases } from './faults.ts';
import { findViolations, ruleNames, type Violation } from './invariants.ts';
import { type PhaseReached } from './phase-log.ts';
import { findPlanted, plants } from './planted.ts';
import { notRedone } from './redone.ts';
import { missingForMounts } from './small-scratch.ts';
import { lastWords, summarize } from './summary.ts';
import { openTheatre, type Theatre } from './theatre.ts';
import { startTime } from './time.ts';
import { countDead, readBucket, readLag, readRecord, type World } from './world.ts';

const seed = testSeed();
/** A campaign must be over then; it takes three minutes on two busy processors. */
const longestMs = 7.5 * 60_000;
/** The first start of Kafka and the S3 server on a machine fetches and builds them. */
jest.setTimeout(15 * 60_000);

describeWith(missingForKafka() ?? missingForS3(), `all faults under thirty uploads (seed ${seed})`, () => {
  const over = new AbortController();
  let theatre: Theatre;
  const campaign = newCampaign();
  let reached: readonly PhaseReached[];
  let bus: Pick<World, 'lag' | 'dead'>;
  let violations: Violation[];
  let unasked: string[];
  let undone: string[];

  const perform = async (): Promise<void> => {
    try {
      const time = startTime(longestMs, over.signal);
      await runCampaign(campaign, theatre, { chance: createChance(seed), time });
    } finally {
      reached = await theatre.phases.read();
      process.stdout.write(`${summarize(seed, campaign, reached)}\n`);
    }
    bus = { lag: await readLag(theatre.bus), dead: await countDead(theatre.bus) };
    await theatre.stopServices();
    const world = { ...(await readRecord(theatre.db)), ...(await readBucket(theatre.objects)), ...bus };
    violations = findViolations(world, campaign.ledger);
    reached = await theatre.phases.read();
    unasked = unaskedEnds(theatre, reached);
    undone = notRedone(reached, world);
  };
  beforeAll(async () => {
    theatre = await openTheatre(over.signal);
    let isWell = false;
    try {
      await perform();
      isWell = [...campaign.late, ...violations, ...unasked, ...undone].length === 0;
    } finally {
      // They are gone with the theatre.
      if (!isWell) process.stdout.write(`${lastWords(theatre)}\n`);
    }
  });
  afterAll(async () => {
    over.abort(new Error('the test is over'));
    await (theatre as Theatre | undefined)?.close();
  });

  it.each(Object.entries(namedPhases))('kill a service %s, and nothing of it goes on', (_, phase) => {
    const killed = reached.filter((each) => each.phase === phase && each.order?.signal === 'SIGKILL');
    expect(killed.length).toBeGreaterThan(0);
    for (const last of killed) {
      expect(reached.filter(({ pid }) => pid === last.pid).at(-1)).toBe(last);
    }
  });

  it('send what was sent and not recorded once more', () => {
    const sent = reached.filter(({ phase, order }) => phase === 'webhook.sent' && order !== undefined);
    const ofKilled = sent.map(
      ({ details }) => `${String(details['eventId'])} to ${String(details['endpointId'])}`,
    );
    const receipts = campaign.ledger.receipts.map(({ eventId, endpointId }) => `${eventId} to ${endpointId}`);
    const cameOnce = ofKilled.filter((name) => receipts.filter((each) => each === name).length < 2);
    expect(cameOnce).toEqual([]);
  });

  it('leave half done what is done again, whatever else would mend it', () => {
    expect(undone).toEqual([]);
  });

  it('come with every message twice, on every topic', () => {
    expect(Math.min(...campaign.copied.values())).toBeGreaterThan(0);
    expect(campaign.uncopied).toBe(0);
  });

  it('end no process but those that are killed, and each of these', () => {
    expect(unasked).toEqual([]);
  });

  it('are followed by rest, all in time', () => {
    expect(campaign.late).toEqual([]);
  });

  describeWith(missingForMounts(), 'and a scratch of 64 MiB', () => {
    it('that was full for a while', () => {
      expect(campaign.faults.map(({ name }) => name)).toContain(fullDisk.name);
    });
  });

  it('leave all that was promised true', () => {
    expect(violations).toEqual([]);
  });

  describe('are checked by one who notices', () => {
    it.each(Object.entries(plants))('%s', async (_, { rule, plant }) => {
      const found = await findPlanted(theatre, { bus, ledger: campaign.ledger, plant });
      expect(found.map((violation) => violation.rule)).toContain(rule);
    });

    it('each way in which something may be wrong', () => {
      expect(new Set(Object.values(plants).map(({ rule }) => rule))).toEqual(new Set(ruleNames));
    });
  });
});
