import { z } from 'zod';

/** Whether and where traces go: OpenTelemetry's own variables; the SDK reads its others (`OTEL_*`) by itself. */
export const traceSettings = {
  /** `otlp`, `console` or `none`. Without it and without an endpoint nothing is traced. */
  OTEL_TRACES_EXPORTER: z.string().optional(),
  OTEL_EXPORTER_OTLP_ENDPOINT: z.string().optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: z.string().optional(),
  OTEL_SDK_DISABLED: z.enum(['true', 'false']).default('false'),
  /** The name in traces; `millrace-<service>` unless told. */
  OTEL_SERVICE_NAME: z.string().optional(),
};

export type TraceConfig = z.output<z.ZodObject<typeof traceSettings>>;

/** Whether traces are wanted: an exporter or where to send is named. */
export const wantsTraces = (config: TraceConfig): boolean =>
  config.OTEL_SDK_DISABLED === 'false' &&
  config.OTEL_TRACES_EXPORTER !== 'none' &&
  [
    config.OTEL_TRACES_EXPORTER,
    config.OTEL_EXPORTER_OTLP_ENDPOINT,
    config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
  ].some((value) => value !== undefined);

/**
 * Traces this process if the settings want it. The SDK is large: it is loaded only then.
 * @returns sends what is not sent yet and ends it
 */
export async function startTraces(service: string, config: TraceConfig): Promise<{ stop(): Promise<void> }> {
  if (!wantsTraces(config)) return { stop: () => Promise.resolve() };
  const { startSdk } = await import('./telemetry.ts');
  return startSdk(config.OTEL_SERVICE_NAME ?? `millrace-${service}`);
}
