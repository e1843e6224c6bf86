import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { isDeviceBanned } from '@millrace/store';
import { adminToken, type Answer, createTenant, createTestApi, type TestApi } from '../testing/test-api.ts';

let api: TestApi;
beforeAll(async () => {
  api = await createTestApi({ config: { SMS_PROVIDER: 'log' } });
});
afterAll(() => api.close());

const admin = (request: string, body: object): Promise<Answer> => {
  const [method = '', path = ''] = request.split(' ');
  return api.ask(`${method} internal:/admin/bans/${path}`, { bearer: adminToken, body });
};

describe('banning a phone number', () => {
  it('refuses codes for it in every spelling, until it is lifted [BAN-002, ADM-206]', async () => {
    const { cookie } = await createTenant(api);
    const start = async (phone: string): Promise<[number, string]> => {
      const { status, problem } = await api.ask('POST /v1/me/phone/start', { cookie, body: { phone } });
      return [status, problem.code];
    };
    expect((await admin('POST phone', { phone: '+966501234567', reason: 'abuse' })).status).toBe(200);
    expect(await start('0501234567')).toEqual([403, 'banned']);
    expect(await start('00966501234567')).toEqual([403, 'banned']);
    expect((await start('+966501234568'))[0]).toBe(200);
    expect((await admin('DELETE phone', { phone: '0501234567' })).body).toEqual({ banned: false });
    expect((await start('0501234567'))[0]).toBe(200);
    expect(api.log.text()).not.toContain('501234567');
    const { rows } = await api.store.query<{ row: string }>('select audit::text as row from audit');
    expect(rows.filter(({ row }) => row.includes('501234567'))).toEqual([]);
  });

  it.each([{ phone: '12' }, { phone: '+4915112345678' }])('refuses %j', async (body) => {
    const { status, problem } = await admin('POST phone', body);
    expect([status, problem.code]).toEqual([400, 'invalid_phone']);
  });
});

describe('banning a device', () => {
  it('holds until it is lifted, and is on the audit log [ADM-206]', async () => {
    expect((await admin('POST device', { deviceId: 'dev1' })).body).toEqual({ banned: true });
    expect(await isDeviceBanned(api.store, 'dev1')).toBe(true);
    expect((await admin('DELETE device', { deviceId: 'dev1' })).body).toEqual({ banned: false });
    expect(await isDeviceBanned(api.store, 'dev1')).toBe(false);
    const { rows } = await api.store.query<{ action: string }>(
      `select action from audit where subject = 'dev1' order by at, id`,
    );
    expect(rows.map(({ action }) => action)).toEqual(['device.ban', 'device.unban']);
  });
});
