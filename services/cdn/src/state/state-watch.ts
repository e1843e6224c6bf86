import { type Clock, type Logger, type Loop, type Metrics } from '@millrace/platform';
import { type PlaybackStates } from './playback-states.ts';

const intervalMs = 5_000;
/** With neither confirmation for this long, somebody has to look: at 60 s playback stops. */
const alertSeconds = 20;

/**
 * Shows how long ago each confirmation of the playback state was last at work, and says so once when both are
 * lost. The alert rule reads `millrace_cdn_state_unconfirmed_seconds`.
 */
export function createStateWatch(deps: {
  states: Pick<PlaybackStates, 'ages'>;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
}): Loop {
  const { states, clock, logger, metrics } = deps;
  const unconfirmed = (): number => {
    const { tailSeconds, recordSeconds } = states.ages();
    return Math.min(tailSeconds, recordSeconds);
  };
  metrics.observe(
    'millrace_cdn_state_tail_age_seconds',
    'Age of the newest proof that the tail of the state topic is read.',
    () => states.ages().tailSeconds,
  );
  metrics.observe(
    'millrace_cdn_state_record_age_seconds',
    'Time since the internal route last answered; it is asked only when needed.',
    () => states.ages().recordSeconds,
  );
  metrics.observe(
    'millrace_cdn_state_unconfirmed_seconds',
    'Time since either confirmation of the playback state was last at work.',
    unconfirmed,
  );
  return {
    name: 'playback-state-watch',
    async run(signal, done) {
      let alerted = false;
      while (!signal.aborted) {
        await clock.sleep(intervalMs, signal);
        const seconds = unconfirmed();
        if (seconds >= alertSeconds && !alerted) {
          logger.error({ seconds }, 'playback state is unconfirmed; playback stops at 60 s');
        } else if (seconds < alertSeconds && alerted) {
          logger.info({ seconds }, 'playback state is confirmed again');
        }
        alerted = seconds >= alertSeconds;
        done();
      }
    },
  };
}
