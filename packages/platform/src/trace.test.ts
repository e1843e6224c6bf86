import { afterEach, describe, expect, it } from '@jest/globals';
import { context, type Context, type ContextManager, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { currentTraceparent } from './trace.ts';

/** A context manager that always has this one. */
function withActive(active: Context): ContextManager {
  const manager: ContextManager = {
    active: () => active,
    with: (_context, work, thisArg, ...args) => work.call(thisArg, ...args),
    bind: (_context, target) => target,
    enable: () => manager,
    disable: () => manager,
  };
  return manager;
}
afterEach(() => context.disable());

describe('currentTraceparent', () => {
  it('is the active span in the form of W3C Trace Context', () => {
    const span = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 1 };
    context.setGlobalContextManager(withActive(trace.setSpanContext(ROOT_CONTEXT, span)));
    expect(currentTraceparent()).toBe('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01');
  });

  it('is undefined outside of a span, and inside one that is not recorded anywhere', () => {
    expect(currentTraceparent()).toBeUndefined();
    const none = { traceId: '0'.repeat(32), spanId: '0'.repeat(16), traceFlags: 0 };
    context.setGlobalContextManager(withActive(trace.setSpanContext(ROOT_CONTEXT, none)));
    expect(currentTraceparent()).toBeUndefined();
  });
});
