/**
 * The partition of a key, as Kafka's default partitioner chooses it (murmur2 of the UTF-8 bytes, sign bit
 * cleared, modulo the partitions): a key's order outlives a move from one adapter to the other.
 */
export const partitionOf = (key: string, partitions: number): number =>
  (murmur2(Buffer.from(key)) & 0x7fffffff) % partitions;

/** 32-bit MurmurHash2 with Kafka's seed (`org.apache.kafka.common.utils.Utils.murmur2`), signed. */
function murmur2(data: Buffer): number {
  const m = 0x5bd1e995;
  let h = 0x9747b28c ^ data.length;
  const tail = data.length & ~3;
  for (let i = 0; i < tail; i += 4) {
    let k = Math.imul(data.readInt32LE(i), m);
    k = Math.imul(k ^ (k >>> 24), m);
    h = Math.imul(h, m) ^ k;
  }
  const rest = data.length - tail;
  if (rest > 0) h = Math.imul(h ^ data.readUIntLE(tail, rest), m);
  h = Math.imul(h ^ (h >>> 13), m);
  return h ^ (h >>> 15);
}
