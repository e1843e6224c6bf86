// What `npm run stack` is made of, which runs the same services as processes of their own.
export { distributedBackend } from './cli/distributed.ts';
export { serviceSettings } from './compose/service-settings.ts';
export { startOrUndo, type Undo } from './compose/undo.ts';
export { writeJsonFile } from './data-folder/json-file.ts';
export { choosePorts } from './data-folder/ports.ts';
export { removeRunFile, writeRunFile } from './data-folder/run-file.ts';
export { loadSecrets } from './data-folder/secrets.ts';
export { startDevelopment } from './dev/development.ts';
export { OperatorsProblemError } from './operators-problem.ts';
export { startPostgres, type EmbeddedPostgres } from './postgres/index.ts';
export { sentenceFor } from './sentence-for.ts';
export { stopOnSignals } from './stop-on-signals.ts';
