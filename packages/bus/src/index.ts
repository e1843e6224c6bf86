export * from './bus.ts';
export { consume, type ConsumeOptions } from './consumer.ts';
export { replayDead, type Replayed } from './dead-letters.ts';
export { createMember, type Member } from './member.ts';
