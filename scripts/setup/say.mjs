/** Set-up cannot go on, and the message tells the user what to do; anything else is a bug and keeps its stack. */
export class SetupError extends Error {
  name = 'SetupError';
}

/** One short line for the user. Always standard error: standard output belongs to the command's own answer. */
export function say(line) {
  process.stderr.write(`millrace: ${line}\n`);
}
