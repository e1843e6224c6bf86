import { z } from 'zod';

/** The reconciler's settings. */
export const reconcilerConfig = z.object({
  /** How long leadership lives without a renewal, in milliseconds: a dead leader is replaced after that. */
  RECONCILER_LEASE_MS: z.coerce.number().int().min(1_000).default(5_000),
});

export type ReconcilerConfig = z.output<typeof reconcilerConfig>;
