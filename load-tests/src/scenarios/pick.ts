/** One of a list. @throws Error when it is empty */
export function pick<T>(items: readonly T[], random: number): T {
  const item = items[Math.floor(random * items.length)];
  if (item === undefined) throw new Error('there is nothing to pick from');
  return item;
}
