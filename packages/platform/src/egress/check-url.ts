import { EgressError } from './egress.ts';
import { type AddressRules, guardedAddresses } from './guarded-addresses.ts';
import { readTarget } from './target.ts';

/** A caller waits for the answer, and a name that does not resolve yet is no fault. */
const lookupMs = 3_000;

/**
 * Says in advance whether the guard would refuse a URL: its form, a literal address, or where its name leads now.
 * What sends asks again each time.
 * @throws EgressError `url_refused`, `address_refused`
 */
export async function checkEgressUrl(url: string, rules: AddressRules): Promise<void> {
  const target = readTarget(url, { plainHttp: rules.loopback === true });
  try {
    await guardedAddresses(target, rules, AbortSignal.timeout(lookupMs));
  } catch (error) {
    if (error instanceof EgressError && error.code === 'address_refused') throw error;
  }
}
