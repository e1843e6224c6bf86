import { type Database } from '@millrace/store';

/** Tables that hear of requests a moment after their answers: whoever compares two records leaves them out. */
export const toldLater: readonly string[] = ['rate_windows'];

/** Everything that the record holds, as text table by table, but for the tables that are left out. */
export async function recordOf(
  store: Database,
  without: readonly string[] = [],
): Promise<Record<string, string>> {
  const { rows: tables } = await store.query<{ name: string }>(
    `select relname as name from pg_class
     where relkind = 'r' and relnamespace = 'public'::regnamespace and relname <> all($1) order by 1`,
    [without],
  );
  const dump: Record<string, string> = {};
  for (const { name } of tables) {
    const { rows } = await store.query<{ text: string | null }>(
      `select string_agg(t::text, E'\\n' order by t::text) as text from "${name}" t`,
    );
    dump[name] = rows[0]?.text ?? '';
  }
  return dump;
}
