import { commands } from '../embedded/src/cli/commands.ts';

/**
 * What is wrong with a use of the operator's command line in a text for people, such as
 * `millrace video hold VID --reason "why"`: none when the command takes these values and flags.
 */
export function problemsOf(used: string): string[] {
  // What is quoted is one word.
  const text = used.replaceAll(/"[^"]*"/g, 'TEXT').trim();
  const [, ...words] = text.split(/\s+/);
  const two = words.slice(0, 2).join(' ');
  const known = Object.hasOwn(commands, two) ? two : (words[0] ?? '');
  const command = Object.hasOwn(commands, known) ? commands[known] : undefined;
  if (command === undefined) return [`${used}: there is no such command`];
  const { values, required = [], optional = [], switches = [] } = command;
  const flags = [...text.matchAll(/--([a-z-]+)/g)].map(([, flag = '']) => flag);
  const taken = [...required, ...optional, ...switches, 'json'];
  const first = words.findIndex((word) => word.startsWith('--'));
  const given = words.slice(known.split(' ').length, first === -1 ? undefined : first);
  return [
    ...flags.filter((flag) => !taken.includes(flag)).map((flag) => `${used}: it takes no --${flag}`),
    ...required.filter((flag) => !flags.includes(flag)).map((flag) => `${used}: it needs --${flag}`),
    ...(given.length === values.length ? [] : [`${used}: it takes ${values.length} values`]),
  ];
}
