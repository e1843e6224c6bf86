import { KubeConfig, type RequestContext } from '@kubernetes/client-node';

type Dispatcher = NonNullable<ReturnType<RequestContext['getDispatcher']>>;

/** Connections are made anew with what the files say then: certificates of authorities change. */
const lifetimeMs = 10 * 60_000;

/** Undici ends an idle HTTP/2 session by an error that nobody listens to, which would end the process. */
const http1 = { allowH2: false };

/**
 * Of its own, `KubeConfig` opens a connection for each request. With this all go by the same few.
 */
export class SharedConnections extends KubeConfig {
  #shared: { dispatcher: Dispatcher; since: number } | null = null;

  override createDispatcherOptions(
    ...args: Parameters<KubeConfig['createDispatcherOptions']>
  ): ReturnType<KubeConfig['createDispatcherOptions']> {
    const options = super.createDispatcherOptions(...args);
    return 'connect' in options ? { ...options, connect: { ...options.connect, ...http1 } } : options;
  }

  override async applySecurityAuthentication(context: RequestContext): Promise<void> {
    await super.applySecurityAuthentication(context);
    const made = context.getDispatcher();
    if (made === undefined) return;
    const now = performance.now();
    if (this.#shared !== null && now - this.#shared.since > lifetimeMs) this.renew();
    this.#shared ??= { dispatcher: made, since: now };
    context.setDispatcher(this.#shared.dispatcher);
  }

  /** Requests from now on go by new connections; what runs on the old ones ends in its own time. */
  renew(): void {
    void this.#shared?.dispatcher.close();
    this.#shared = null;
  }

  /** Cuts every connection. */
  async close(): Promise<void> {
    const shared = this.#shared;
    this.#shared = null;
    await shared?.dispatcher.destroy();
  }
}
