import { type IncomingHttpHeaders } from 'node:http';
import { ProblemError } from '@millrace/contract';
import { randomSegment, signText, verifyText } from '@millrace/domain';
import { isDeviceBanned } from '@millrace/store';
import { z } from 'zod';
import { type ApiDeps } from '../deps.ts';
import { cookieOf, cookieText } from './credentials.ts';

type DeviceDeps = Pick<ApiDeps, 'config' | 'store'>;

const name = 'svc_device';
const purpose = 'millrace.device.v1';
/** As long as browsers keep a cookie (RFC 6265bis §5.5). */
const maxAge = 400 * 86_400;

const payload = z.object({ dev: z.string().min(1).max(64) });

/** The device that a browser's signed `svc_device` cookie names; null without a genuine one. */
function deviceOf({ config }: Pick<DeviceDeps, 'config'>, headers: IncomingHttpHeaders): string | null {
  const text = cookieOf(headers, name);
  if (text === null || config.SIGN_IN_KEYS === undefined) return null;
  return payload.safeParse(verifyText(purpose, text, config.SIGN_IN_KEYS)).data?.dev ?? null;
}

/** The browser's device id and the cookie that keeps it: a new device unless it has one. */
export function rememberDevice(
  { config }: Pick<DeviceDeps, 'config'>,
  headers: IncomingHttpHeaders,
): { deviceId: string; cookie: string | null } {
  const deviceId = deviceOf({ config }, headers) ?? randomSegment();
  const keys = config.SIGN_IN_KEYS;
  const body: z.input<typeof payload> = { dev: deviceId };
  const cookie = keys === undefined ? null : cookieText(name, signText(purpose, body, keys), { maxAge });
  return { deviceId, cookie };
}

/** @throws ProblemError `banned` for a call from a banned device (contract BAN-003) */
export async function refuseBannedDevice(deps: DeviceDeps, headers: IncomingHttpHeaders): Promise<void> {
  const deviceId = deviceOf(deps, headers);
  if (deviceId !== null && (await isDeviceBanned(deps.store, deviceId))) throw new ProblemError('banned');
}
