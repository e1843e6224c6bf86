import kafkajs, { type PartitionAssigner } from './kafkajs.ts';

/** A member of a group as it joins. */
export interface Claimant {
  id: string;
  /** Partitions that it has now. */
  owned: readonly number[];
}

/**
 * Shares partitions out: as many to each member as to any other, or one more, and as few as can be change hands.
 * (kafkajs shares them out anew, in turn, whenever a member comes or goes.)
 */
export function shareOut(
  partitions: readonly number[],
  claimants: readonly Claimant[],
): Map<string, number[]> {
  const free = new Set(partitions);
  // Who has more keeps more; among equals any order does, but it has to be one.
  const members = claimants.toSorted((a, b) => b.owned.length - a.owned.length || (a.id < b.id ? -1 : 1));
  const least = Math.floor(partitions.length / members.length);
  const withOneMore = partitions.length % members.length;
  const dueTo = (rank: number): number => least + (rank < withOneMore ? 1 : 0);
  const shares = members.map(({ owned }, rank) => {
    // Two may claim the same after a member was away: the first has it.
    const kept = owned.filter((partition) => free.has(partition)).slice(0, dueTo(rank));
    for (const partition of kept) free.delete(partition);
    return kept;
  });
  const rest = [...free];
  shares.forEach((share, rank) => share.push(...rest.splice(0, dueTo(rank) - share.length)));
  return new Map(members.map(({ id }, rank) => [id, (shares[rank] ?? []).toSorted((a, b) => a - b)]));
}

const { MemberAssignment, MemberMetadata } = kafkajs.AssignerProtocol;
const version = 0;

/** The same as kafkajs wants it: members tell what they own as they join, and the group's leader shares out. */
export const stickyAssigner =
  (owned: () => readonly number[]): PartitionAssigner =>
  ({ cluster }) => ({
    name: 'millrace-sticky',
    version,
    protocol: ({ topics }) => ({
      name: 'millrace-sticky',
      metadata: MemberMetadata.encode({
        version,
        topics,
        userData: Buffer.from(JSON.stringify(owned())),
      }),
    }),
    assign: ({ members, topics: [topic = ''] }) => {
      const partitions = cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => partitionId);
      const claimants = members.map(({ memberId, memberMetadata }) => ({
        id: memberId,
        owned: ownedOf(MemberMetadata.decode(memberMetadata)?.userData),
      }));
      const shares = shareOut(
        partitions.toSorted((a, b) => a - b),
        claimants,
      );
      return Promise.resolve(
        [...shares].map(([memberId, share]) => ({
          memberId,
          memberAssignment: MemberAssignment.encode({
            version,
            assignment: { [topic]: share },
            userData: Buffer.alloc(0),
          }),
        })),
      );
    },
  });

/** What a member said that it owns; nothing when that cannot be read. */
function ownedOf(userData: Buffer | undefined): number[] {
  try {
    const owned: unknown = JSON.parse(userData?.toString() ?? '');
    return Array.isArray(owned) ? owned.map(Number).filter(Number.isInteger) : [];
  } catch {
    return [];
  }
}
