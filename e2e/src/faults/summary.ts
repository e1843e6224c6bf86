import { type Campaign } from './campaign.ts';
import { type PhaseReached } from './phase-log.ts';
import { type Theatre } from './theatre.ts';

/** What happened, for people: each fault, and how often each phase was passed and ended a process. */
export function summarize(
  seed: number,
  { faults, stages, copied, late }: Campaign,
  reached: readonly PhaseReached[],
): string {
  const phases = [...new Set(reached.map(({ phase }) => phase))].sort().map((phase) => {
    const of = reached.filter((each) => each.phase === phase);
    const hit = of.filter(({ order }) => order !== undefined);
    const who = hit.map(({ service, pid, order }) => `${service} ${pid} ${order?.signal ?? ''}`).join(', ');
    return `  ${phase.padEnd(18)} ${String(of.length).padStart(6)} times${who === '' ? '' : `; ${who}`}`;
  });
  return [
    `faults (MILLRACE_TEST_SEED=${seed}):`,
    ...faults.map(({ name, seconds }) => `  ${seconds.toFixed(1).padStart(6)} s  ${name}`),
    ...['stages:', ...stages.map(({ name, seconds }) => `  ${seconds.toFixed(1).padStart(6)} s  ${name}`)],
    'phases:',
    ...phases,
    ...late.map((each) => `not in time: ${each}`),
    `sent twice: ${[...copied].map(([topic, messages]) => `${messages} of ${topic}`).join(', ')}`,
  ].join('\n');
}

const lastLines = 20;

/** What each service said last, for people. */
export const lastWords = ({ stack, readLog }: Theatre): string =>
  [...stack.services.keys()]
    .flatMap((name) => [`last words of ${name}:`, ...readLog(name).slice(-lastLines)])
    .join('\n');
