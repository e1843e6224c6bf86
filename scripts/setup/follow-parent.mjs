// Loaded before each entry: when the process that started it is gone, even by `kill -9`, the entry is told to stop.
// The channel to the parent closes then; it is there for nothing else and keeps nothing alive.
if (process.channel) {
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  process.channel.unref();
}
