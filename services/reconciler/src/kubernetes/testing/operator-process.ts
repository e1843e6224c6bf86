/** A reconciler as a process of its own, for tests that kill it: `operator-process.ts CONNECTION KUBECONFIG RESYNC_MS`. */
import { createLogger } from '@millrace/platform';
import { startOperator } from './start-operator.ts';

const [connectionString = '', kubeconfig = '', resyncMs = ''] = process.argv.slice(2);
const logger = createLogger({ service: 'reconciler', level: 'info' });
const operator = await startOperator({ connectionString, kubeconfig, resyncMs: Number(resyncMs), logger });
process.once('SIGTERM', () => void operator.stop());
logger.info({}, 'stands for election');
