import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../../docs/runbooks/', import.meta.url));

export interface Runbook {
  /** File without its ending, the last part of `runbook_url`. */
  name: string;
  text: string;
  /** Alerts that it says it is for. */
  alerts: string[];
  /** Headings of its parts. */
  parts: string[];
  /** Targets of its links to other pages, relative to the page. */
  links: string[];
  /** Bodies of its code blocks in a language. */
  blocks(language: 'promql' | 'sql' | 'sh'): string[];
}

/** Every page of `docs/runbooks` but its index. */
export const readRunbooks = (): Runbook[] =>
  readdirSync(folder)
    .filter((file) => file.endsWith('.md') && file !== 'README.md')
    .map((file) => {
      const text = readFileSync(join(folder, file), 'utf8');
      const all = (pattern: RegExp): string[] => [...text.matchAll(pattern)].map(([, found = '']) => found);
      const [alerts = ''] = all(/^Alerts: (.*)$/gm);
      return {
        ...{ name: file.replace(/\.md$/, ''), text },
        alerts: [...alerts.matchAll(/`(\w+)`/g)].map(([, alert = '']) => alert),
        parts: all(/^## (.*)$/gm),
        links: all(/\]\(([^)#:]+)\)/g),
        blocks: (language) =>
          all(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, 'gm')).map((body) => body.trim()),
      };
    });

export const runbookIndex = (): string => readFileSync(join(folder, 'README.md'), 'utf8');
