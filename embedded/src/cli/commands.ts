import {
  createOperator,
  encodePauses,
  holdVideo,
  liftVideo,
  pauseEncodes,
  removeVideo,
  resumeEncodes,
} from '@millrace/api';
import { replayDead } from '@millrace/bus';
import { topics } from '@millrace/contract';
import { type Logger, systemClock } from '@millrace/platform';
import { accountUsage, allowSweeps, declareRestored, eraseAccount, recordState } from '@millrace/store';
import { changeDevTxt } from '../dev/dev-zone.ts';
import { type Backend } from './backend.ts';

/** What a command works on. */
interface CommandContext {
  dataDir: string;
  backend: Backend;
  logger: Logger;
}

/** A command's flags: `true` for a switch that was given. */
export type Flags = Readonly<{ [name: string]: string | boolean | undefined }>;

export interface Command {
  /** Names of the values after noun and verb. */
  values: readonly string[];
  /** Flags with a value that must be given, flags with a value that may be, and switches. */
  required?: readonly string[];
  optional?: readonly string[];
  switches?: readonly string[];
  /** Returns the JSON document to print. */
  run(context: CommandContext, values: readonly string[], flags: Flags): Promise<unknown>;
}

const text = (flags: Flags, name: string): string | undefined => {
  const value = flags[name];
  return typeof value === 'string' ? value : undefined;
};
const given = (flags: Flags, name: string): string => text(flags, name) ?? '';
const secondsOf = (flags: Flags, name: string): number => {
  const value = text(flags, name) ?? '0';
  if (!/^\d{1,5}$/.test(value)) throw new CommandUsageError(`--${name} is a number of seconds`);
  return Number(value);
};
const operator = async (context: CommandContext) =>
  createOperator({ store: await context.backend.store(), clock: systemClock });
const teamFlags = { optional: ['reason'], switches: ['legal'] } as const;
const team = (flags: Flags) => ({
  reason: text(flags, 'reason') ?? null,
  legal: flags['legal'] === true,
  actor: 'operator',
});

/** What a pause is of. */
const pausedFlags = ['account', 'class'] as const;
const paused = (
  flags: Flags,
): { accountId?: string | undefined; class?: 'standard' | 'large' | undefined } => {
  const taskClass = text(flags, 'class');
  if (taskClass !== undefined && taskClass !== 'standard' && taskClass !== 'large')
    throw new CommandUsageError('--class is standard or large');
  return { accountId: text(flags, 'account'), class: taskClass };
};

/** Every command of the operator's command line by `noun verb`; a lone noun has no verb. */
export const commands: Readonly<{ [name: string]: Command }> = {
  'account create': {
    values: [],
    required: ['name', 'email'],
    optional: ['plan'],
    run: async (context, _values, flags) => {
      const planId = text(flags, 'plan');
      return (await operator(context)).createAccount({
        name: given(flags, 'name'),
        email: given(flags, 'email'),
        ...(planId === undefined ? {} : { planId }),
      });
    },
  },
  'account plan': {
    values: ['ACCOUNT', 'PLAN'],
    run: async (context, [accountId = '', planId = '']) =>
      (await operator(context)).setPlan({ accountId, planId }),
  },
  'account ban': {
    values: ['ACCOUNT'],
    optional: ['reason'],
    switches: ['lift'],
    run: async (context, [accountId = ''], flags) => {
      const reason = text(flags, 'reason');
      return (await operator(context)).banAccount({
        accountId,
        banned: flags['lift'] !== true,
        ...(reason === undefined ? {} : { reason }),
      });
    },
  },
  'account erase': {
    values: ['ACCOUNT'],
    required: ['name'],
    optional: ['reason'],
    run: async (context, [accountId = ''], flags) => {
      const input = { accountId, name: given(flags, 'name'), reason: text(flags, 'reason') ?? null };
      return (await context.backend.store()).transaction((tx) =>
        eraseAccount(tx, { ...input, actor: 'operator' }),
      );
    },
  },
  'session create': {
    values: [],
    required: ['user'],
    run: async (context, _values, flags) =>
      (await operator(context)).createSession({ userId: given(flags, 'user') }),
  },
  'project create': {
    values: [],
    required: ['account', 'name'],
    run: async (context, _values, flags) =>
      (await operator(context)).createProject({
        accountId: given(flags, 'account'),
        name: given(flags, 'name'),
      }),
  },
  'key create': {
    values: [],
    required: ['project'],
    optional: ['scope', 'name'],
    run: async (context, _values, flags) => {
      const scope = text(flags, 'scope') ?? 'full';
      if (scope !== 'full' && scope !== 'playback')
        throw new CommandUsageError('--scope is full or playback');
      return (await operator(context)).createApiKey({
        projectId: given(flags, 'project'),
        name: text(flags, 'name') ?? 'command line',
        scope,
      });
    },
  },
  'domain add': {
    values: [],
    required: ['project', 'hostname'],
    switches: ['verified'],
    run: async (context, _values, flags) =>
      (await operator(context)).addDomain({
        projectId: given(flags, 'project'),
        hostname: given(flags, 'hostname'),
        verified: flags['verified'] === true,
      }),
  },
  'dev txt': {
    values: ['NAME', 'VALUE'],
    switches: ['delete'],
    run: ({ dataDir }, [name = '', value = ''], flags) =>
      Promise.resolve(changeDevTxt(dataDir, { name, value, remove: flags['delete'] === true })),
  },
  'video hold': {
    values: ['VIDEO'],
    ...teamFlags,
    run: async (context, [videoId = ''], flags) =>
      holdVideo(await context.backend.store(), { videoId, ...team(flags) }),
  },
  'video lift': {
    values: ['VIDEO'],
    run: async (context, [videoId = '']) =>
      liftVideo(await context.backend.store(), { videoId, actor: 'operator' }),
  },
  'video remove': {
    values: ['VIDEO'],
    ...teamFlags,
    run: async (context, [videoId = ''], flags) => {
      await removeVideo(await context.backend.store(), { videoId, ...team(flags) });
      return { removed: videoId };
    },
  },
  'encoding pause': {
    values: [],
    optional: [...pausedFlags, 'reason'],
    run: async (context, _values, flags) => {
      const [what, reason] = [paused(flags), text(flags, 'reason') ?? null];
      return pauseEncodes(await context.backend.store(), { what, reason, actor: 'operator' });
    },
  },
  'encoding resume': {
    values: [],
    optional: pausedFlags,
    run: async (context, _values, flags) => {
      const what = paused(flags);
      return resumeEncodes(await context.backend.store(), { what, actor: 'operator' });
    },
  },
  'encoding pauses': {
    values: [],
    run: async (context) => encodePauses(await context.backend.store()),
  },
  'usage show': {
    values: ['ACCOUNT'],
    run: async (context, [accountId = '']) =>
      (await context.backend.store()).transaction((tx) => accountUsage(tx, accountId)),
  },
  'record show': {
    values: [],
    run: async (context) => recordState(await context.backend.store()),
  },
  'record restored': {
    values: [],
    run: async (context) => declareRestored(await context.backend.store(), { actor: 'operator' }),
  },
  'record sweep': {
    values: [],
    run: async (context) => allowSweeps(await context.backend.store(), { actor: 'operator' }),
  },
  migrate: {
    values: [],
    optional: ['wait'],
    run: async (context, _values, flags) => ({
      migrated: true,
      ...(await context.backend.migrate(1_000 * secondsOf(flags, 'wait'))),
    }),
  },
  topics: {
    values: [],
    run: async (context) => {
      const differences = await context.backend.ensureTopics();
      const bus = await context.backend.bus();
      const names = Object.values(topics).map((topic) => topic.name);
      const partitions = await Promise.all(names.map((name) => bus.partitions(name)));
      return { data: names.map((name, i) => ({ name, partitions: partitions[i] })), differences };
    },
  },
  bucket: {
    values: [],
    run: (context) => context.backend.prepareBucket(),
  },
  'dead replay': {
    values: ['TOPIC'],
    run: async (context, [topic = '']) =>
      replayDead(await context.backend.bus(), topic, { logger: context.logger }),
  },
};

/** The command line was not used as its usage says. */
export class CommandUsageError extends Error {}
