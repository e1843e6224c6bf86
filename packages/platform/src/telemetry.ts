import { NodeSDK, type NodeSDKConfiguration } from '@opentelemetry/sdk-node';

/**
 * Starts OpenTelemetry's SDK for traces. Exporter, protocol, headers, sampling and limits come from the standard
 * `OTEL_*` variables, which the SDK reads by itself; metrics have their own way out, `/metrics`.
 * @returns sends what is not sent yet and ends it
 */
export function startSdk(
  service: string,
  { spanProcessors }: Pick<NodeSDKConfiguration, 'spanProcessors'> = {},
): { stop(): Promise<void> } {
  const sdk = new NodeSDK({
    serviceName: service,
    instrumentations: [],
    metricReaders: [],
    logRecordProcessors: [],
    ...(spanProcessors === undefined ? {} : { spanProcessors }),
  });
  sdk.start();
  return { stop: () => sdk.shutdown() };
}
