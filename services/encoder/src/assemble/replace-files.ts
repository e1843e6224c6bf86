import { type DeliveryIndex } from '@millrace/contract';

type Files = DeliveryIndex['files'];
type NamedFile = Files[string] & { name: string };

/** The same encode with other files of these names. */
export const withFiles = (index: DeliveryIndex, files: readonly NamedFile[]): DeliveryIndex => ({
  ...index,
  files: { ...index.files, ...Object.fromEntries(files.map(({ name, ...file }) => [name, file])) },
});

/** A delivery index and the key that it lies at. */
interface StoredIndex {
  key: string;
  index: DeliveryIndex;
}

/** Prefixes that `before` needs and `after` does not: nothing under them is read once `after` is in use. */
export function replacedPrefixes(before: StoredIndex, after: StoredIndex): string[] {
  const needed = prefixesOf(after);
  return [...prefixesOf(before)].filter((prefix) => !needed.has(prefix));
}

function prefixesOf({ key, index }: StoredIndex): Set<string> {
  const tracks = [...index.renditions, ...index.audio];
  const files = Object.values(index.files);
  const keys = [key, ...tracks.flatMap(({ objects }) => objects), ...files.map((file) => file.key)];
  return new Set(keys.map((each) => each.slice(0, each.lastIndexOf('/') + 1)));
}
