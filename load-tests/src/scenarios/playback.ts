import { watch } from '../player.ts';
import { type Scenario } from '../scenario.ts';
import { pick } from './pick.ts';

/** One viewer's visit. */
export const viewer: Scenario = (world, { videos }) => watch(world, pick(videos, world.random()));
