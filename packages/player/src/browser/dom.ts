/** Makes an element with attributes and children. Attributes are set as text; none of them may be `style`. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** The element of the page with this id, of this class. @throws Error when the page has none such */
export function find<E extends Element>(id: string, kind: new () => E): E {
  const element = document.getElementById(id);
  if (!(element instanceof kind)) throw new Error(`the page has no ${id}`);
  return element;
}

const paths = {
  play: 'M8 5v14l11-7z',
  pause: 'M6 5h4v14H6zM14 5h4v14h-4z',
  volume: 'M4 9v6h4l5 5V4L8 9zM16 8.500a5 5 0 0 1 0 7M18.500 6a8.500 8.500 0 0 1 0 12',
  muted: 'M4 9v6h4l5 5V4L8 9zM16.500 9.500l5 5M21.500 9.500l-5 5',
  captions: 'M3 5h18v14H3zM11 10.500a2 2 0 1 0 0 3M17.500 10.500a2 2 0 1 0 0 3',
  settings:
    'M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM12 2.500v3M12 18.500v3M2.500 12h3M18.500 12h3M5.300 5.300l2.100 2.100M16.600 16.600l2.100 2.100M18.700 5.300l-2.100 2.100M7.400 16.600l-2.100 2.100',
  pictureInPicture: 'M3 5h18v14H3zM12 12h7v5h-7z',
  fullscreen: 'M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5',
  exitFullscreen: 'M9 4v5H4M20 9h-5V4M15 20v-5h5M4 15h5v5',
} as const;
export type Icon = keyof typeof paths;
const filled: ReadonlySet<Icon> = new Set(['play', 'pause']);

/** An icon that says nothing by itself: its button has the label. */
function icon(name: Icon): SVGSVGElement {
  const namespace = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(namespace, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('aria-hidden', 'true');
  if (filled.has(name)) svg.classList.add('filled');
  const path = document.createElementNS(namespace, 'path');
  path.setAttribute('d', paths[name]);
  svg.append(path);
  return svg;
}

export interface IconButton {
  element: HTMLButtonElement;
  show(name: Icon, label: string): void;
}

export function iconButton(name: Icon, label: string, onClick: () => void): IconButton {
  const element = make('button', { type: 'button' });
  let shown: Icon | null = null;
  const show: IconButton['show'] = (next, text) => {
    element.setAttribute('aria-label', text);
    element.title = text;
    if (next !== shown) element.replaceChildren(icon(next));
    shown = next;
  };
  show(name, label);
  element.addEventListener('click', onClick);
  return { element, show };
}
