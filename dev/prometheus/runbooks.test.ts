import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { routes } from '@millrace/contract';
import { logLevels } from '@millrace/platform';
import { problemsOf } from '../command-uses.ts';
import { installation, readRules } from './rule-files.ts';
import { readRunbooks, type Runbook, runbookIndex } from './runbooks.ts';

const runbooks = readRunbooks();
const alerts = readRules().filter(({ alert }) => alert !== undefined);
const runbookUrl = `${installation.runbooks}/`;
const root = fileURLToPath(new URL('../../', import.meta.url));
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};
const pages = fileURLToPath(new URL('../../docs/runbooks/', import.meta.url));
const templates = fileURLToPath(new URL('../../charts/millrace/templates/', import.meta.url));

describe('alerts', () => {
  it.each(alerts.map((rule) => [rule.alert ?? '', rule] as const))(
    '%s has all that it needs',
    (name, rule) => {
      const { severity } = rule.labels ?? {};
      expect(['page', 'ticket']).toContain(severity);
      const { summary = '', description = '', runbook_url: url = '' } = rule.annotations ?? {};
      expect(summary).toMatch(/^[A-Z{].*\.$/);
      expect(description).not.toBe('');
      expect(url.startsWith(runbookUrl)).toBe(true);
      const page = runbooks.find((each) => each.name === url.slice(runbookUrl.length));
      expect(page?.alerts).toContain(name);
    },
  );
});

describe.each(runbooks.map((page) => [page.name, page] as const))('runbook %s', (name, page) => {
  it('names alerts that lead to it, has its parts, and is in the index', () => {
    for (const alert of page.alerts) {
      const rule = alerts.find((each) => each.alert === alert);
      expect(rule?.annotations?.['runbook_url']).toBe(runbookUrl + name);
    }
    expect(page.parts).toEqual(['Symptoms', 'First look', 'Mend', 'Well again']);
    expect(runbookIndex()).toContain(`(${name}.md)`);
    expect([...page.blocks('promql'), ...page.blocks('sql'), ...page.blocks('sh')]).not.toEqual([]);
  });

  it('links to pages that there are', () => {
    expect(page.links.filter((link) => !existsSync(join(pages, link)))).toEqual([]);
  });

  it('names commands of the command line, with the values and flags that they take', () => {
    expect(commandsIn(page).flatMap(problemsOf)).toEqual([]);
  });

  it('names routes that there are', () => {
    const known = Object.values(routes).map(({ method, path }) => `${method.toUpperCase()} ${path}`);
    const used = [...page.text.matchAll(/`((?:GET|POST|PUT|PATCH|DELETE) \/[^`]*)`/g)].map(
      ([, route = '']) => route,
    );
    expect(used.filter((route) => !known.includes(route))).toEqual([]);
  });

  it('reads logs of all pods of a component, and looks there for what programs write', () => {
    const lines = page.blocks('sh').flatMap((block) => block.split('\n'));
    for (const line of lines.filter((each) => each.startsWith('kubectl logs '))) {
      // Of a Deployment it reads one pod, and of a selector ten lines each unless told.
      expect(line).toMatch(
        /^kubectl logs (POD |-l app\.kubernetes\.io\/(component|instance)=\w+ .*--tail=-1 --prefix)/,
      );
      const [, filter = ''] = line.split(' | grep ');
      const sought = [...filter.matchAll(/'([^']+)'/g)].map(([, text = '']) => text);
      expect(sought.length > 0).toBe(line.includes('|'));
      const levels = logLevels.map((level) => `"level":"${level}"`);
      const unknown = sought.filter((text) => !levels.includes(text) && !sources().includes(text));
      expect(unknown).toEqual([]);
    }
  });

  it('names scripts of the package that there are', () => {
    const used = [...page.text.matchAll(/npm run (?:-s )?([\w-]+)/g)].map(([, script = '']) => script);
    expect(used.filter((script) => !Object.hasOwn(scripts, script))).toEqual([]);
    // It starts a service of its own, unless told where one runs on this machine.
    expect(page.text).not.toMatch(/npm run (-s )?demo(?! -- --(stack|attach))/);
  });

  it('names Deployments and components of the chart', () => {
    const files = readdirSync(templates).map((file) => file.replace(/\.\w+$/, ''));
    const hooks = readFileSync(join(templates, 'hooks.yaml'), 'utf8');
    const jobs = [...hooks.matchAll(/dict "name" "(\w+)"/g)].map(([, job = '']) => job);
    const used = [
      ...page.text.matchAll(/deployment\/millrace-(\w+)/g),
      ...page.text.matchAll(/app\.kubernetes\.io\/component=(\w+)/g),
    ].map(([, component = '']) => component);
    expect(used.filter((component) => ![...files, ...jobs].includes(component))).toEqual([]);
  });
});

describe('the page of loops that fail', () => {
  it('names loops that there are', () => {
    const { text = '' } = runbooks.find(({ name }) => name === 'loop-failing') ?? {};
    const named = [...text.matchAll(/^- (`[^:]*):/gm)].flatMap(([, names = '']) =>
      [...names.matchAll(/`([\w-]+)`/g)].map(([, name]) => name),
    );
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((name = '') => !sources().includes(`name: '${name}'`))).toEqual([]);
  });
});

/** What the programs' sources say, tests apart. */
let allSources: string | undefined;
const sources = (): string =>
  (allSources ??= ['services', 'packages']
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => /^[^/]+\/src\/.*(?<!\.test)\.ts$/.test(file))
        .map((file) => readFileSync(join(root, folder, file), 'utf8')),
    )
    .join('\n'));

/** Uses of the command line, in lines of shell blocks and in sentences. */
const commandsIn = (page: Runbook): string[] =>
  [
    ...page.blocks('sh').flatMap((block) => block.split('\n')),
    ...[...page.text.matchAll(/`(millrace [a-z][^`]*)`/g)].map(([, command = '']) => command),
  ].filter((command) => command.startsWith('millrace '));
