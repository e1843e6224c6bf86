export * from './bus.ts';
export { continueTrace } from './continue-trace.ts';
export { consume, type ConsumeOptions } from './consumer.ts';
export { replayDead, type Replayed } from './dead-letters.ts';
