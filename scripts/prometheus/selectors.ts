/**
 * What keeps two installations in one Prometheus apart: the matcher of every selector in rules and dashboards. The
 * chart puts its release's namespace into rules; in dashboards `$namespace` is a variable of Grafana's.
 */
export const ownNamespace = 'namespace="$namespace"';

/** Names that have a colon are recorded ones. Whatever stands in quotes is text, not names. */
const selector = /\b(?:millrace[_:]|nodejs_|process_|up\b)[\w:]*(?:\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?/g;

/** The selectors of a PromQL expression, `name` or `name{…}`. */
export const selectorsOf = (expr: string): string[] => [...expr.matchAll(selector)].map(([found]) => found);

/** The expression with a matcher more in each selector. */
export const withMatcher = (expr: string, matcher: string): string =>
  expr.replaceAll(selector, (found) =>
    found.endsWith('}') ? found.replace('{', `{${matcher},`) : `${found}{${matcher}}`,
  );
