import { ProblemError } from '@millrace/contract';
import { banDevice, banPhone, unbanDevice, unbanPhone } from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';
import { mobileNumber, phoneHashes } from '../phone/number.ts';

export type BanHandlers = Pick<ApiHandlers, 'banPhone' | 'unbanPhone' | 'banDevice' | 'unbanDevice'>;

/** Bans of numbers and devices, from the next request on. The record knows a number by its hashes alone. */
export const banHandlers = ({ store, config }: FeatureDeps): BanHandlers => {
  const hashesOf = (phone: string): Buffer[] => {
    if (config.PHONE_KEYS === undefined) throw new ProblemError('sms_not_configured');
    return phoneHashes(mobileNumber(phone), config.PHONE_KEYS);
  };
  return {
    banPhone: async ({ caller: { actor }, body: { phone, reason = null } }) => {
      const ban = { phoneHashes: hashesOf(phone), reason, actor };
      await store.transaction((tx) => banPhone(tx, ban));
      return { banned: true };
    },
    unbanPhone: async ({ caller: { actor }, body: { phone } }) => {
      const ban = { phoneHashes: hashesOf(phone), actor };
      await store.transaction((tx) => unbanPhone(tx, ban));
      return { banned: false };
    },
    banDevice: async ({ caller: { actor }, body: { deviceId, reason = null } }) => {
      await store.transaction((tx) => banDevice(tx, { deviceId, reason, actor }));
      return { banned: true };
    },
    unbanDevice: async ({ caller: { actor }, body: { deviceId } }) => {
      await store.transaction((tx) => unbanDevice(tx, { deviceId, actor }));
      return { banned: false };
    },
  };
};
