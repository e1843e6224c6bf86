import { type Bell, type Loop } from '@millrace/platform';
import { type KubernetesApi } from '../kubernetes/api.ts';
import { createOperator } from '../kubernetes/operator.ts';
import { relayLoop } from '../relay/relay-loop.ts';
import { allLoops, type LoopDeps } from './all.ts';
import { backlogLoop } from './backlog.ts';
import { repeat } from './loop.ts';
import { waitingLoop } from './waiting.ts';

export interface LeadingDeps extends Omit<LoopDeps, 'onEffective'> {
  /** Rings when the outbox has something. */
  bell: Bell;
  /** What the relay deletes and the operator writes is guarded by it; why the rest need not be, says ADR 21. */
  lease: { lease: string; epoch: number };
  /** With it the leader is an operator too. */
  kubernetes?: { api: KubernetesApi; resyncMs: number } | undefined;
}

/**
 * Every loop of the process that leads. One supervisor runs them all, with the same waits after failures and the same
 * measures; what each is made of, and why, is the table of ADR 21.
 */
export function leadingLoops(deps: LeadingDeps): Loop[] {
  const operator = deps.kubernetes && createOperator({ ...deps, ...deps.kubernetes });
  return [
    relayLoop(deps, deps.lease),
    backlogLoop(deps),
    waitingLoop(deps),
    ...(operator?.loops ?? []),
    ...allLoops({ ...deps, onEffective: (hold) => operator?.holdIsEffective(hold) }).map((loop) =>
      repeat(loop, deps),
    ),
  ];
}
