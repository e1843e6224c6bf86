import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { Exchange, SendBudget } from './exchange.ts';
import { createRefusals } from './refusals.ts';

const shared = {
  refusals: createRefusals('https://docs.example'),
  budget: new SendBudget(1e6),
  newRequestId: () => 'req_1',
};

/** What comes over the wire when `answer` writes the answer of one request. */
async function exchanged(answer: (exchange: Exchange) => void): Promise<string> {
  const server = createServer((request, response) => answer(new Exchange(request, response, shared)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  const text = Buffer.concat((await socket.toArray()) as Buffer[]).toString();
  await new Promise((resolve) => server.close(resolve));
  return text;
}

describe('an exchange that fails after its headers', () => {
  it('breaks off instead of answering twice', async () => {
    const text = await exchanged((exchange) => {
      const broken = (): string => {
        throw new Error('no body');
      };
      expect(() => {
        exchange.send(['Content-Type', 'text/plain'], 10, broken);
      }).toThrow('no body');
      exchange.refuse('internal_error');
    });
    expect(text).not.toContain('internal_error');
    expect(text).not.toContain('X-Svc-Error');
  });
});

describe('a metered answer', () => {
  it.each([10, 100_000])('of %d bytes tells of the bytes that count apart from the rest', async (size) => {
    const told: number[] = [];
    const text = await exchanged((exchange) => {
      const metering = { splitAt: 7, sent: (bytes: number) => void told.push(bytes) };
      exchange.send(['Content-Type', 'text/plain'], size, Buffer.alloc(size, 'x'), { metering });
    });
    expect(text.split('\r\n\r\n')[1]).toBe('x'.repeat(size));
    expect(told).toEqual([7, size - 7]);
  });

  it('that is too short to count tells of all of it', async () => {
    const told: number[] = [];
    await exchanged((exchange) => {
      const metering = { splitAt: 11, sent: (bytes: number) => void told.push(bytes) };
      exchange.send(['Content-Type', 'text/plain'], 10, Buffer.alloc(10, 'x'), { metering });
    });
    expect(told).toEqual([10]);
  });
});
