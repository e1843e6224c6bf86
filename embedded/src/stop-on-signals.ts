/** One Ctrl-C may arrive several times, through npm and the terminal: those count as one. */
const sameSignalMs = 1_000;

/** Aborts at the first SIGINT or SIGTERM; a later one ends the process. */
export function stopOnSignals(): AbortSignal {
  const stop = new AbortController();
  let firstAt = 0;
  const onSignal = (name: NodeJS.Signals): void => {
    if (!stop.signal.aborted) {
      firstAt = Date.now();
      stop.abort(new Error(`got ${name}`));
    } else if (Date.now() - firstAt > sameSignalMs) {
      process.exit(130);
    }
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  return stop.signal;
}
