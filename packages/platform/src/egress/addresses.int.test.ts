import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { guardedAddresses } from './guarded-addresses.ts';
import { createEgress } from './guarded-egress.ts';
import { readTarget } from './target.ts';
import {
  createScene,
  inside,
  type Listener,
  otherOutside,
  outside,
  post,
  type Scene,
} from './testing/scene.ts';

let scene: Scene;
/** The receiver on the internet, and whatever listens inside on the same port. */
let receiver: Listener;
let traps: readonly Listener[];

beforeAll(async () => (scene = await createScene()));
afterEach(() => scene.clear());
afterAll(() => scene.close());

async function setTraps(): Promise<number> {
  ({ receiver, traps } = await scene.serveTlsBesideTraps((_request, response) =>
    response.writeHead(200, { connection: 'close' }).end(),
  ));
  return receiver.port;
}
const trapped = (): number => traps.reduce((sum, trap) => sum + trap.connections, 0);
const codeOf = (sending: Promise<unknown>): Promise<unknown> =>
  sending.then(
    () => 'answered',
    (error: unknown) => (error as { code: string }).code,
  );

describe('an address in the URL', () => {
  /** With nothing but the rule that it has of itself. */
  const sendByRule = (url: string): Promise<unknown> =>
    codeOf(createEgress({ servers: [scene.dns.address] }).send(post(url)));

  it.each([
    '127.0.0.1',
    '2130706433',
    '017700000001',
    '0x7f000001',
    '0x7f.1',
    '127.1',
    '0177.0.0.1',
    '0',
    '0.0.0.0',
    '127.0.0.1.',
    '１２７.０.０.１',
    '①②⑦.0.0.1',
    '127。0。0。1',
    '12\t7.0.0.1',
    '0X7F.0x0.00.1',
    '[::1]',
    '[::]',
    '[0:0:0:0:0:0:0:1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::FFFF:7F00:1]',
    '[::127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[64:ff9b:1::7f00:1]',
    '[2002:7f00:1::]',
    '[::ffff:169.254.169.254]',
    '[::ffff:10.0.0.1]',
    'localhost',
    'LOCALHOST',
    'localhost.',
    'any.localhost',
    'ｌｏｃａｌｈｏｓｔ',
  ])('%j is refused by the rule itself, without a question or a connection [WHD-412]', async (host) => {
    const port = await setTraps();
    const asked = scene.dns.queries.length;
    expect(await sendByRule(`https://${host}:${port}/`)).toBe('address_refused');
    expect(trapped()).toBe(0);
    expect(scene.dns.queries).toHaveLength(asked);
  });

  it.each([
    '169.254.169.254',
    '100.64.0.1',
    '10.0.0.1',
    '198.18.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '224.0.0.1',
  ])('%s is refused', async (host) => {
    expect(await sendByRule(`https://${host}/`)).toBe('address_refused');
  });
});

describe('a name', () => {
  it('that leads inside is refused [WHD-413]', async () => {
    const port = await setTraps();
    scene.dns.set('inside.example', 'A', [inside]);
    expect(await codeOf(scene.egress().send(post(`https://inside.example:${port}/`)))).toBe(
      'address_refused',
    );
    expect(trapped()).toBe(0);
  });

  it.each([
    [[outside, inside], []],
    [[inside, outside], []],
    [[outside], ['::1']],
    [[outside], ['::ffff:127.0.0.1']],
    [[outside], ['64:ff9b::7f00:1']],
    [[outside], ['2002:7f00:1::']],
    [[outside], ['fe80::1']],
    [[], ['::ffff:127.0.0.1']],
  ])('with the addresses %j and %j is refused for one of them [WHD-413]', async (four, six) => {
    const port = await setTraps();
    scene.dns.set('mixed.example', 'A', four);
    scene.dns.set('mixed.example', 'AAAA', six);
    expect(await codeOf(scene.egress().send(post(`https://mixed.example:${port}/`)))).toBe('address_refused');
    expect(trapped() + receiver.connections).toBe(0);
  });

  it('that is an alias of an inside one is refused', async () => {
    const port = await setTraps();
    scene.dns.set('alias.example', 'CNAME', ['target.example']);
    scene.dns.set('target.example', 'A', [inside]);
    expect(await codeOf(scene.egress().send(post(`https://alias.example:${port}/`)))).toBe('address_refused');
    expect(trapped()).toBe(0);
  });

  it('is asked for once a connection: what was checked is what is connected to [WHD-412, WHD-413]', async () => {
    const port = await setTraps();
    scene.dns.rebind('hook.example', 'A', [[outside], [inside]]);
    const guard = scene.egress();
    expect(await guard.send(post(`https://hook.example:${port}/`))).toMatchObject({ status: 200 });
    expect(receiver.connections).toBe(1);
    expect(
      scene.dns.queries.filter(({ name, type }) => name === 'hook.example' && type === 'A'),
    ).toHaveLength(1);
    // The answer closed the connection, so the next one asks again, and is told 127.0.0.1.
    expect(await codeOf(guard.send(post(`https://hook.example:${port}/`)))).toBe('address_refused');
    expect(trapped()).toBe(0);
    scene.dns.set('hook.example', 'A', [outside]);
  });

  it('is connected to at its next address when one does not answer', async () => {
    const port = await setTraps();
    scene.dns.set('two.example', 'A', [otherOutside, outside]);
    // The certificate is for another name: having got so far proves the connection.
    expect(await codeOf(scene.egress().send(post(`https://two.example:${port}/`)))).toBe('tls_failed');
    expect(receiver.connections).toBe(1);
  });

  it('may have IPv6 addresses only', async () => {
    const port = await setTraps();
    scene.dns.set('six.example', 'AAAA', ['::1']);
    expect(
      await codeOf(
        scene.egress({ allows: (address) => address === '::1' }).send(post(`https://six.example:${port}/`)),
      ),
    ).toBe('tls_failed');
    expect(traps[1]?.connections).toBe(1);
  });

  it.each(['servfail', 'silent'] as const)(
    'with addresses of one family is reached though its servers are %s about the other',
    async (fault) => {
      const port = await setTraps();
      scene.dns.fault('hook.example', fault, 'AAAA');
      expect(await scene.egress().send(post(`https://hook.example:${port}/`))).toMatchObject({ status: 200 });
      scene.dns.fault('hook.example', null, 'AAAA');
    },
  );

  it.each(['servfail', 'refused'] as const)('whose servers answer %s is not found', async (fault) => {
    scene.dns.fault('broken.example', fault);
    await expect(scene.egress().send(post('https://broken.example/'))).rejects.toMatchObject({
      code: 'lookup_failed',
      message: 'the host name could not be resolved',
    });
  });

  it('that does not exist is not found', async () => {
    expect(await codeOf(scene.egress().send(post('https://nowhere.example/')))).toBe('lookup_failed');
  });

  it('whose servers are silent ends with the exchange’s own deadline', async () => {
    scene.dns.fault('silent.example', 'silent');
    const startedAt = performance.now();
    expect(await codeOf(scene.egress().send(post('https://silent.example/', { timeoutMs: 150 })))).toBe(
      'timeout',
    );
    expect(performance.now() - startedAt).toBeLessThan(1_500);
  });
});

describe('a look-up that is called off', () => {
  it('ends at once, and does not wait for servers that never answer', async () => {
    scene.dns.fault('silent.example', 'silent');
    const asked = new AbortController();
    const looking = guardedAddresses(
      readTarget('https://silent.example/', { plainHttp: false }),
      { servers: [scene.dns.address] },
      asked.signal,
    );
    const startedAt = performance.now();
    asked.abort(new Error('enough'));
    await expect(looking).rejects.toThrow('enough');
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });
});

describe('development', () => {
  it('lets loopback through, over http too, and nothing else', async () => {
    const local = await scene.serveHttp((_request, response) => response.end('here'), inside);
    const guard = scene.egress({ loopback: true });
    for (const host of ['127.0.0.1', 'localhost', '127.1']) {
      expect(await guard.send(post(`http://${host}:${local.port}/`))).toMatchObject({ status: 200 });
    }
    expect(await codeOf(guard.send(post('https://10.0.0.1/')))).toBe('address_refused');
    expect(await codeOf(guard.send(post('https://169.254.169.254/')))).toBe('address_refused');
    expect(await codeOf(guard.send(post('https://[::ffff:127.0.0.1]/')))).toBe('address_refused');
  });

  it('does not send http to a host outside', async () => {
    const guard = scene.egress({ loopback: true, allows: () => true });
    expect(await codeOf(guard.send(post('http://203.0.113.1/')))).toBe('address_refused');
  });

  it('is nothing that happens unasked', async () => {
    const local = await scene.serveHttp((_request, response) => response.end('here'), inside);
    expect(await codeOf(scene.egress().send(post(`http://127.0.0.1:${local.port}/`)))).toBe('url_refused');
    expect(local.connections).toBe(0);
  });
});
