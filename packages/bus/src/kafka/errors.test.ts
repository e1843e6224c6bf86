import { describe, expect, it } from '@jest/globals';
import kafkajs from 'kafkajs';
import { isPassing } from './cluster.ts';
import { protocolError, toBusError } from './errors.ts';

const { KafkaJSError, KafkaJSProtocolError } = kafkajs;
/** As kafkajs makes it from an answer's code. */
const answered = (type: string): Error =>
  new KafkaJSProtocolError(Object.assign(new Error(type), { type, code: 1, retriable: true }));

/** As kafkajs names it; its class takes no message. */
const unknownCoordinator = Object.assign(new Error('none'), { name: 'KafkaJSGroupCoordinatorNotFound' });

describe('an error of kafkajs', () => {
  it('has the protocol’s name wherever that is wrapped', () => {
    const inside = new Error('no luck', { cause: answered('REBALANCE_IN_PROGRESS') });
    expect(protocolError(toBusError(inside))).toBe('REBALANCE_IN_PROGRESS');
    expect(protocolError(new Error('plain'))).toBeUndefined();
  });

  it.each([
    ['a coordinator that no broker knew yet', unknownCoordinator, true],
    ['a coordinator that is coming', answered('GROUP_COORDINATOR_NOT_AVAILABLE'), true],
    ['a broken line', new KafkaJSError('closed'), false],
    ['what the broker does not allow', answered('GROUP_AUTHORIZATION_FAILED'), false],
  ])('about %s passes or not: %#', (_what, error, passes) => {
    expect(isPassing(toBusError(error))).toBe(passes);
  });
});
