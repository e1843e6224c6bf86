import { ProblemError } from '@millrace/contract';

/** @throws ProblemError `account_banned`; `banned` when the account's phone number is (contract "Bans") */
export function refuseBanned(holder: { bannedAt: Date | null; phoneBanned: boolean }): void {
  if (holder.bannedAt !== null) throw new ProblemError('account_banned');
  if (holder.phoneBanned) throw new ProblemError('banned');
}
