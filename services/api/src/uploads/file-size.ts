import { fieldProblem } from '@millrace/contract';
import { largestUploadBytes } from '@millrace/domain';
import { type Plan } from '@millrace/store';

/** The most bytes that a file may have on a plan; storage has a bound of its own. */
export const mostFileBytes = (plan: Plan): number => Math.min(plan.maxFileBytes, largestUploadBytes);

/** @throws ProblemError `plan_limit_reached` naming the field `path` */
export function assertFileSize(plan: Plan, path: string, bytes: number): void {
  const mostBytes = mostFileBytes(plan);
  if (bytes <= mostBytes) return;
  const message = `is over the ${mostBytes} bytes that a file may have on the plan ${plan.name}`;
  throw fieldProblem('plan_limit_reached', path, message);
}
