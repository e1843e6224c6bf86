export { type CapturedLog, captureLogger, type LogLine } from './capture-logger.ts';
export { createTestCertificate, type TestCertificate } from './certificate.ts';
export { createTestDnsServer, type TestDnsServer } from './dns-server.ts';
export { createManualClock, type ManualClock } from './manual-clock.ts';
export { createTestDatabase, type TestDatabase } from './test-database.ts';
export { waitFor, type WaitForOptions } from './wait-for.ts';
export { seedAccount, type SeededAccount, seedProcessingVideo } from './seed.ts';
export { createTestObjects, type TestObjects } from './test-objects.ts';
export { type RecordedSpan, recordSpans, type SpanRecorder } from './record-spans.ts';
