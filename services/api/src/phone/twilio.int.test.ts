import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type PhoneChallenge } from '@millrace/contract';
import { type Answer, createTenant, createTestApi, type Tenant, type TestApi } from '../testing/test-api.ts';
import { createTwilioSmsSender } from './twilio-sms-sender.ts';

const accountSid = `AC${'0'.repeat(32)}`;
const authToken = 'twilio-token';
const from = '+15005550006';
const phone = '+966501234567';

interface Sent {
  method: string | undefined;
  path: string | undefined;
  headers: IncomingMessage['headers'];
  form: Record<string, string>;
}
type Say = (response: ServerResponse, form: Record<string, string>) => void;

/** As Twilio documents its answers: 201 with the message, else its code, status and a sentence with the number. */
const json = (response: ServerResponse, status: number, body: unknown): void => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
};
const accepts: Say = (response, form) => {
  json(response, 201, {
    ...{ sid: `SM${'1'.repeat(32)}`, status: 'queued', error_code: null, error_message: null },
    ...{ to: form['To'], from: form['From'] ?? null, body: form['Body'], num_segments: '1' },
  });
};
const refuses: Say = (response, form) => {
  json(response, 400, {
    ...{ code: 21_211, status: 400, more_info: 'https://www.twilio.com/docs/errors/21211' },
    message: `The 'To' number ${form['To'] ?? ''} is not a valid phone number.`,
  });
};

let say: Say = accepts;
const sent: Sent[] = [];
const server = createServer((request, response) => {
  void text(request).then((body) => {
    const form = Object.fromEntries(new URLSearchParams(body));
    sent.push({ method: request.method, path: request.url, headers: request.headers, form });
    say(response, form);
  });
});
let url: string;
let api: TestApi;
let me: Tenant;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
  const twilio = { TWILIO_ACCOUNT_SID: accountSid, TWILIO_AUTH_TOKEN: authToken, TWILIO_FROM: from };
  api = await createTestApi({ config: { SMS_PROVIDER: 'twilio', TWILIO_URL: url, ...twilio } });
});
afterAll(async () => {
  await api.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});
beforeEach(async () => {
  say = accepts;
  sent.length = 0;
  me = await createTenant(api);
  await api.store.query('delete from phone_challenges');
});

const start = (): Promise<Answer<PhoneChallenge>> =>
  api.ask<PhoneChallenge>('POST /v1/me/phone/start', { cookie: me.cookie, body: { phone } });
const stored = async (): Promise<number> => (await api.store.query('select from phone_challenges')).rowCount;

describe('a code by Twilio', () => {
  it('is asked for as documented, within the call, and not told in the answer [PHN-003, PHN-207, CNV-006]', async () => {
    const { status, body } = await start();
    expect(status).toBe(200);
    expect(body).not.toHaveProperty('testCode');
    expect(sent).toHaveLength(1);
    const [{ method, path, headers, form } = {} as Sent] = sent;
    expect([method, path]).toEqual(['POST', `/2010-04-01/Accounts/${accountSid}/Messages.json`]);
    expect(headers.authorization).toBe(
      `Basic ${Buffer.from(`${accountSid}:${authToken}`).toString('base64')}`,
    );
    expect(headers['content-type']).toMatch(/^application\/x-www-form-urlencoded/);
    expect(form).toEqual({
      ...{ To: phone, From: from },
      Body: expect.stringMatching(/^Your Millrace code is [0-9]{6}\./) as unknown,
    });
    const code = /[0-9]{6}/.exec(form['Body'] ?? '')?.[0] ?? '';
    const verified = await api.ask('POST /v1/me/phone/verify', {
      ...{ cookie: me.cookie, body: { challengeId: body.challengeId, code } },
    });
    expect(verified.status).toBe(200);
    expect(api.log.text()).not.toContain(code);
  });

  it.each<[string, Say]>([
    ['refuses', refuses],
    ['fails', (response) => void response.writeHead(500).end('no')],
    ['answers no JSON', (response) => void response.writeHead(201).end('<html>')],
    ['ends the connection', (response) => response.destroy()],
    ['leads elsewhere', (response) => void response.writeHead(307, { location: `${url}/other` }).end()],
    [
      'takes it as failed',
      (response) => json(response, 201, { sid: 'SM1', status: 'failed', error_code: 30_006 }),
    ],
  ])('that %s is 502, stores nothing and logs no number [PHN-213]', async (_what, answer) => {
    say = answer;
    // As often as one likes: what was not sent counts against no limit.
    for (let i = 0; i < 6; i++) {
      const { status, problem } = await start();
      expect([status, problem.code]).toEqual([502, 'sms_send_failed']);
    }
    expect([sent.length, await stored()]).toEqual([6, 0]);
    expect(api.log.text()).not.toMatch(/501234567|twilio-token/);
  });

  it('that fails leaves the challenge before it open [PHN-213, PHN-214]', async () => {
    const { body } = await start();
    const code = /[0-9]{6}/.exec(sent[0]?.form['Body'] ?? '')?.[0] ?? '';
    say = refuses;
    await start();
    const answer = await api.ask('POST /v1/me/phone/verify', {
      ...{ cookie: me.cookie, body: { challengeId: body.challengeId, code } },
    });
    expect(answer.status).toBe(200);
  });

  it('holds no connection of the record while Twilio thinks', async () => {
    const waiting: (() => void)[] = [];
    say = (response, form) => {
      waiting.push(() => {
        accepts(response, form);
      });
      // More than the record has connections; each from an account and to a number of its own.
      if (waiting.length === 12) for (const go of waiting) go();
    };
    const tenants = await Promise.all(Array.from({ length: 12 }, () => createTenant(api)));
    const answers = await Promise.all(
      tenants.map(({ cookie }, index) =>
        api.ask('POST /v1/me/phone/start', {
          cookie,
          body: { phone: `+96650999${String(index).padStart(4, '0')}` },
        }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(tenants.map(() => 200));
  });

  it('goes by a messaging service, and gives up in time', async () => {
    const service = `MG${'2'.repeat(32)}`;
    const options = { url, accountSid, authToken, from: service, timeoutMs: 50 };
    await createTwilioSmsSender({ ...options, timeoutMs: 5_000 }).send(phone, 'Hello');
    expect(sent[0]?.form).toEqual({ To: phone, MessagingServiceSid: service, Body: 'Hello' });
    say = () => undefined;
    await expect(createTwilioSmsSender(options).send(phone, 'Hello')).rejects.toMatchObject({
      code: 'sms_send_failed',
    });
  });
});
