import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import { missingForClients } from '../kubernetes/clients.ts';
import { describeWith } from '../real-part.ts';
import {
  componentOf,
  connectionsTo,
  neededBy,
  partyOf,
  somewhere,
  type Target,
} from './needed-connections.ts';
import { type Connection, networkOf, type Party } from './network-policy.ts';
import { type AnyObject, type Workload, workloadsOf } from './objects.ts';
import { renderChart, valuesFiles } from './render.ts';

jest.setTimeout(120_000);

const namespace = 'media';
const internet: Target = { name: 'internet', to: [{ address: somewhere }], port: 443, protocol: 'TCP' };
const stranger = (where: string): Party => ({ namespace: where, labels: {}, ports: {} });
const outside: Party = { address: '203.0.113.9' };
/** Who may call what, by the name of the port; the policies of the CDN and of the callers say the rest. */
const callers: Readonly<Record<string, Party>> = {
  ...{ outside, neighbour: stranger(namespace), elsewhere: stranger('default') },
  ...{ ingress: stranger('ingress'), access: stranger('access'), monitoring: stranger('monitoring') },
};
const everybody = Object.keys(callers);
const mayCall = (values: string): Readonly<Record<string, readonly string[]>> =>
  values === 'large'
    ? { http: ['ingress'], internal: ['access'], ops: ['monitoring'] }
    : { http: everybody, internal: [], ops: everybody.filter((name) => name !== 'outside') };

describeWith(missingForClients(), 'the network policies of the chart', () => {
  describe.each([...valuesFiles.keys()])('with the values %s', (values) => {
    let workloads: Workload[];
    let objects: AnyObject[];
    let allows: (call: Connection) => boolean;
    beforeAll(async () => {
      objects = await renderChart({ values });
      workloads = workloadsOf(objects);
      allows = networkOf(objects, namespace);
    });
    const reaches = (workload: Workload, target: Target): boolean =>
      connectionsTo(target, partyOf(workload)).every(allows);

    it('let every pod reach what its settings name', () => {
      for (const workload of workloads) {
        const targets = neededBy(workload, objects);
        const cut = targets.filter((target) => !reaches(workload, target)).map(({ name }) => name);
        expect({ of: workload.metadata.name, cut }).toEqual({ of: workload.metadata.name, cut: [] });
        for (const { name, to } of targets)
          expect({ name, parties: to.length }).not.toMatchObject({ parties: 0 });
      }
    });

    it('let no pod reach what only others need, nor another’s ports', () => {
      const inside = workloads
        .flatMap((workload) => neededBy(workload, objects))
        .filter(({ to }) => to.every((party) => !('address' in party)));
      const own = workloads.flatMap((workload): Target[] => {
        const party = partyOf(workload);
        return Object.entries(party.ports).map(([name, port]) => ({
          ...{ name: `${componentOf(workload)} ${name}`, to: [party], port, protocol: 'TCP' },
        }));
      });
      for (const workload of workloads) {
        const needs = neededBy(workload, objects);
        const needed = needs.map(placeOf);
        // No policy names a host: who may call the web may call what answers on its port inside. Of that, there is the
        // Kubernetes API, for which it has no token.
        const web = needs.some((target) => placeOf(target) === placeOf(internet)) ? [internet.port] : [];
        const more = [...inside, ...own]
          .filter((target) => !needed.includes(placeOf(target)) && !web.includes(target.port))
          .filter((target) => reaches(workload, target))
          .map(({ name }) => name);
        expect({ of: workload.metadata.name, more }).toEqual({ of: workload.metadata.name, more: [] });
      }
    });

    it('let the internet be reached by those alone that need it', () => {
      const reaching = workloads.filter((workload) => reaches(workload, internet)).map(componentOf);
      const needing = workloads.filter(
        (workload) =>
          // What customers name as endpoints; and where the Kubernetes API is, the chart cannot know.
          ['webhooks', 'reconciler'].includes(componentOf(workload)) ||
          neededBy(workload, objects).some((target) => placeOf(target) === placeOf(internet)),
      );
      expect(reaching).toEqual(needing.map(componentOf));
    });

    it('let webhooks go out, and to nothing inside', () => {
      const webhooks = workloads.find((workload) => componentOf(workload) === 'webhooks') as Workload;
      const to = (address: string, port: number): boolean =>
        allows({ from: partyOf(webhooks), to: { address }, port });
      expect([443, 1024, 8443, 65_535].map((port) => to(somewhere, port))).toEqual(Array(4).fill(true));
      expect(to('2606:4700::1', 443)).toBe(true);
      expect([22, 25, 80, 1023].filter((port) => to(somewhere, port))).toEqual([]);
      const private4 = [
        '10.0.0.1',
        '172.31.0.1',
        '192.168.1.1',
        '100.64.0.1',
        '127.0.0.1',
        '169.254.169.254',
      ];
      const private6 = ['::1', 'fd00:ec2::254', 'fe80::1'];
      expect([...private4, '0.0.0.0', '224.0.0.1', ...private6].filter((each) => to(each, 443))).toEqual([]);
    });

    it('let each port be called by whom it is for, and by nobody else', () => {
      for (const workload of workloads) {
        const party = partyOf(workload);
        // A port that nobody declared is one too.
        for (const [name, port] of [...Object.entries(party.ports), ['none', 1234] as const]) {
          const calling = everybody.filter((caller) =>
            allows({ from: callers[caller] ?? outside, to: party, port }),
          );
          const where = `${componentOf(workload)} ${name}`;
          expect({ where, calling }).toEqual({ where, calling: mayCall(values)[name] ?? [] });
        }
      }
    });
  });
});

/** The same for two names of one place. */
const placeOf = ({ to, port, protocol }: Target): string => JSON.stringify([to, port, protocol]);
