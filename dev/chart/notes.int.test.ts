import { expect, it, jest } from '@jest/globals';
import { routes } from '@millrace/contract';
import { parseAllDocuments } from 'yaml';
import { problemsOf } from '../command-uses.ts';
import { missingForClients } from '../kubernetes/clients.ts';
import { describeWith } from '../real-part.ts';
import { type AnyObject, containerOf, named, type Workload } from './objects.ts';
import { chart, helm, valuesArguments } from './render.ts';

jest.setTimeout(120_000);

/** What an installation says at its end, without a cluster, and the objects that it is about. */
async function install(release: string, ...set: string[]): Promise<{ notes: string; objects: AnyObject[] }> {
  const where = ['--namespace', 'media', '--dry-run=client', '--output', 'json'];
  const answer = await helm([
    'install',
    release,
    chart,
    ...where,
    ...valuesArguments({ values: 'small', set }),
  ]);
  const { manifest, info } = JSON.parse(answer) as { manifest: string; info: { notes: string } };
  const objects = parseAllDocuments(manifest).map((document) => document.toJS() as AnyObject | null);
  return { notes: info.notes, objects: objects.filter((object) => object !== null) };
}

describeWith(missingForClients(), 'the notes of an installation', () => {
  it.each([
    ['a release of another name', 'video'],
    ['one called as the chart', 'millrace'],
    ['one that calls its objects otherwise', 'video', 'fullnameOverride="films"'],
  ])('name three commands that work, of %s', async (_what, release, ...set) => {
    const { notes, objects } = await install(release, ...set);
    const commands = notes
      .split('\n')
      .filter((line) => line.startsWith('   '))
      .map((line) => line.trim());
    expect(commands).toHaveLength(3);
    const [watch = '', first = '', ask = ''] = commands;

    const kubectl = 'kubectl --namespace media';
    const [, api = ''] = /^(?:.*) rollout status deployment\/(\S+)$/.exec(watch) ?? [];
    expect(watch.startsWith(`${kubectl} rollout status `)).toBe(true);
    expect(named(objects, 'Deployment', api).metadata.namespace).toBe('media');

    const [, reconciler = '', command = ''] =
      /^(?:.*) exec deployment\/(\S+) -- (millrace .*)$/.exec(first) ?? [];
    expect(first.startsWith(`${kubectl} exec `)).toBe(true);
    // The one image that has the command line.
    const { image } = containerOf(named(objects, 'Deployment', reconciler) as Workload);
    expect(image).toMatch(/\/reconciler:/);
    expect(problemsOf(command)).toEqual([]);

    const [, path = ''] = /^curl https:\/\/api\.example\.com(\/\S*)$/.exec(ask) ?? [];
    const answered = Object.values(routes).filter(({ method }) => method.toUpperCase() === 'GET');
    expect(answered.map((route) => route.path)).toContain(path);
  });
});
