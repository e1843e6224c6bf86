import { type World } from './world.ts';

/** What the set-up of a run made or found, handed to every scenario; k6 carries it as JSON. */
export interface Prepared {
  /** Ready videos for viewers and calls. */
  videos: string[];
  /** A ready video that is held and lifted; null where none is. */
  held: string | null;
  /** The healthy endpoint of the storm, and those beside it that are slow or dead. */
  endpoints: { healthy: string; troubled: string[] } | null;
  /** Videos that the run itself uploaded, to be deleted after it. */
  uploaded: string[];
}

/** One iteration of a scenario. @param source a video file, where the test has one */
export type Scenario = (world: World, prepared: Prepared, source: ArrayBuffer | null) => Promise<void>;

/** Runs one iteration and says whether it got to its end; k6 itself only logs an iteration that throws. */
export async function iterate(
  world: World,
  scenario: Scenario,
  { prepared, source }: { prepared: Prepared; source: ArrayBuffer | null },
): Promise<void> {
  try {
    await scenario(world, prepared, source);
    world.meter.event('completed', true);
  } catch (error) {
    world.meter.event('completed', false);
    world.log(error instanceof Error ? error.message : String(error));
  }
}
