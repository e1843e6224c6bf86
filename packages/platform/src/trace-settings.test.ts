import { expect, it } from '@jest/globals';
import { z } from 'zod';
import { traceSettings, wantsTraces } from './trace-settings.ts';

const read = (env: Record<string, string>) => z.object(traceSettings).parse(env);

it.each([
  ['nothing is set', {}, false],
  ['a collector is named', { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }, true],
  [
    'one for traces is named',
    { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:4318/v1/traces' },
    true,
  ],
  ['an exporter is named', { OTEL_TRACES_EXPORTER: 'console' }, true],
  [
    'traces are to go nowhere',
    { OTEL_TRACES_EXPORTER: 'none', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://x' },
    false,
  ],
  ['the SDK is switched off', { OTEL_SDK_DISABLED: 'true', OTEL_TRACES_EXPORTER: 'otlp' }, false],
])('when %s, whether traces are wanted is: %3$s', (_when, env, wanted) => {
  expect(wantsTraces(read(env as Record<string, string>))).toBe(wanted);
});
