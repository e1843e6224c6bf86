export { type Clock, systemClock } from './clock.ts';
export { type Health, type Service } from './service.ts';
export { type Logger, silentLogger } from './logger.ts';
