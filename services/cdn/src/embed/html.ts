const escapes: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Text as it stands between tags or within a quoted attribute. */
const escapeHtml = (text: string): string => text.replaceAll(/[&<>"']/g, (sign) => escapes[sign] ?? sign);

/** Text that is markup already, and is not escaped again. */
class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}
export type { Markup };

/** @param text markup that was made by `html` */
export const markup = (text: string): Markup => new Markup(text);

/** Markup in which every value is escaped, unless it is markup itself; null is nothing. */
export function html(strings: TemplateStringsArray, ...values: (string | Markup | null)[]): Markup {
  const parts = values.map((value) =>
    value === null ? '' : value instanceof Markup ? value.text : escapeHtml(value),
  );
  return new Markup(String.raw({ raw: strings }, ...parts));
}
