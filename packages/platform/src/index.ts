export { type Bell, createBell } from './bell.ts';
export { type Clock, systemClock } from './clock.ts';
export { ConfigError, flagText, listText, loadConfig, maskConfig } from './config.ts';
export {
  type EgressAnswer,
  type EgressConnector,
  EgressError,
  type EgressErrorCode,
  type EgressRequest,
} from './egress/egress.ts';
export { checkEgressUrl } from './egress/check-url.ts';
export { createKeep } from './keep.ts';
export { type Phase, reachPhase } from './phase.ts';
export { isFreePort, probePort, quietPort } from './probe-port.ts';
export { createEgress, type EgressOptions } from './egress/guarded-egress.ts';
export { startServices } from './lifecycle.ts';
export { createLogger, type Logger, type LoggerOptions, logLevels, silentLogger } from './logger.ts';
export { type Loop, type LoopSupervisor, repeatEvery, superviseLoops } from './loops.ts';
export { createMetrics, type Metrics } from './metrics.ts';
export { createTermMetrics, type TermMetrics } from './term-metrics.ts';
export { type ProcessConfig, processSettings } from './process-settings.ts';
export { type ProcessParts, runService } from './run-service.ts';
export { type Health, type Service } from './service.ts';
export { startTraces, traceSettings } from './trace-settings.ts';
export {
  beginSpan,
  currentTraceHeaders,
  inSpan,
  markFailed,
  type SpanSettings,
  type TraceHeaders,
} from './trace.ts';
export { createHttpApp } from './http/app.ts';
export { type HttpAppOptions, type Site } from './http/app-options.ts';
export {
  type Admission,
  type Call,
  type ErrorTranslator,
  type Guard,
  type GuardedRequest,
  type Handler,
} from './http/call.ts';
export { clientIp, clientNetwork } from './http/client-ip.ts';
export { createHttpServer, type HttpServer, type HttpServerOptions } from './http/server.ts';
export { createOpsServer, type OpsServer } from './ops-server.ts';
export { isPublicAddress } from './dns/public-address.ts';
export { createTxtLookup, type TxtAnswer, type TxtLookup, type TxtLookupOptions } from './dns/txt-lookup.ts';
