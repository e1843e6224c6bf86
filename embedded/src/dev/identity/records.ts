import { type Adapter, type AdapterPayload } from 'oidc-provider';

/** More than a developer's browsers have under way; the oldest go first. */
const maximumRecords = 1_000;

interface Kept {
  payload: AdapterPayload;
  expiresAt: number;
}

/** What the identity provider keeps of sign-ins under way: in memory, and only so much of it. */
export function createRecords(): (model: string) => Adapter {
  const kept = new Map<string, Kept>();
  const alive = (key: string): AdapterPayload | undefined => {
    const found = kept.get(key);
    return found !== undefined && found.expiresAt > Date.now() ? found.payload : undefined;
  };
  return (model) => {
    const keyOf = (id: string): string => `${model}:${id}`;
    const first = (fits: (payload: AdapterPayload) => boolean): AdapterPayload | undefined =>
      [...kept.keys()]
        .filter((key) => key.startsWith(keyOf('')))
        .map(alive)
        .find((payload) => payload !== undefined && fits(payload));
    return {
      upsert: (id, payload, expiresIn = Infinity) => {
        kept.delete(keyOf(id));
        kept.set(keyOf(id), { payload, expiresAt: Date.now() + expiresIn * 1_000 });
        const [oldest] = kept.keys();
        if (kept.size > maximumRecords && oldest !== undefined) kept.delete(oldest);
        return Promise.resolve();
      },
      find: (id) => Promise.resolve(alive(keyOf(id))),
      findByUid: (uid) => Promise.resolve(first((payload) => payload.uid === uid)),
      findByUserCode: (code) => Promise.resolve(first((payload) => payload.userCode === code)),
      consume: (id) => {
        const payload = alive(keyOf(id));
        if (payload !== undefined) payload.consumed = Math.floor(Date.now() / 1_000);
        return Promise.resolve();
      },
      destroy: (id) => {
        kept.delete(keyOf(id));
        return Promise.resolve();
      },
      revokeByGrantId: (grantId) => {
        for (const [key, { payload }] of kept) if (payload.grantId === grantId) kept.delete(key);
        return Promise.resolve();
      },
    };
  };
}
