export { createKafkaBus, type KafkaBus, type KafkaBusOptions } from './kafka-bus.ts';
export { openBus } from './open.ts';
