/**
 * Keeps what was made lately, up to `most` of it, then forgets all of it: for what is cheap to make again, though not
 * each time.
 * @returns gives what was made under a key, made now if it is not kept; what throws is not
 */
export function createKeep<T>(most: number): (key: string, make: () => T) => T {
  const kept = new Map<string, T>();
  return (key, make) => {
    const known = kept.get(key);
    if (known !== undefined) return known;
    const made = make();
    if (kept.size >= most) kept.clear();
    kept.set(key, made);
    return made;
  };
}
