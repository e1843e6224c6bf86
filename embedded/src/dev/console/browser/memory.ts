/** Fields that take an id, by its prefix. */
const fields: Readonly<Record<string, string>> = {
  ...{ prj: 'projectId', vid: 'videoId', upl: 'uploadId', dom: 'domainId', key: 'keyId' },
  ...{ whe: 'endpointId', del: 'deliveryId', phc: 'challengeId' },
};
/** Fields that take what answers call otherwise. */
const names: Readonly<Record<string, string>> = { testCode: 'code', hostname: 'domain' };

/**
 * What an answer tells for the next forms, by the field that takes it. Lists begin with what is newest, so the first
 * of a kind counts.
 */
export function learn(answer: unknown): Map<string, string> {
  const learnt = new Map<string, string>();
  visit('', answer);
  return learnt;

  function visit(name: string, value: unknown): void {
    if (typeof value === 'object' && value !== null) {
      for (const [key, each] of Object.entries(value)) visit(key, each);
    } else if (typeof value === 'string') {
      const prefix = /^([a-z]{3})_[A-Za-z0-9]+$/.exec(value)?.[1] ?? '';
      const field = fields[prefix] ?? names[name];
      if (field !== undefined && !learnt.has(field)) learnt.set(field, value);
    }
  }
}
