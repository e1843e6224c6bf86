/** Ends the run's PostgreSQL and removes its folder. An interrupted run is cleaned up by the server's guardian. */
export default async function globalTeardown(): Promise<void> {
  await globalThis.millraceTestPostgres?.stop();
}
