/**
 * How many partitions each member of a group is due: equal shares, the remainder to those who joined first.
 * Every member computes it from the same list and moves towards it by itself: it sets free what it has over
 * its share and claims free ones up to it, so that a join or a crash moves as few partitions as can be.
 */
export function shareOf(memberId: string, members: readonly string[], partitions: number): number {
  const rank = members.indexOf(memberId);
  if (rank < 0) return 0;
  return Math.floor(partitions / members.length) + (rank < partitions % members.length ? 1 : 0);
}
