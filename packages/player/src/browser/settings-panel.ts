import { fill, type Texts } from '../texts.ts';
import { make } from './dom.ts';
import { type Choices, type Engine, type Track } from './engine.ts';

const speeds = [0.5, 0.75, 1, 1.25, 1.5, 1.75, 2];
const automatic = 'auto';

export interface SettingsPanel {
  element: HTMLElement;
  offer(choices: Choices): void;
  showQuality(position: number): void;
  /** Shows captions, or none, as the key and the button do. */
  toggleCaptions(): void;
  onCaptions(listener: (there: boolean, shown: boolean) => void): void;
}

interface Option {
  value: string;
  label: string;
}

/** The menus of quality, speed, captions and sound: those that have something to choose. */
export function createSettingsPanel(video: HTMLVideoElement, engine: Engine, texts: Texts): SettingsPanel {
  const { labels } = texts;
  const quality = menu('quality', labels.quality, (value) =>
    engine.setQuality(value === automatic ? null : Number(value)),
  );
  const speed = menu('speed', labels.speed, (value) => (video.playbackRate = Number(value)));
  const captions = menu('captions', labels.captions, (value) => showCaptions(value));
  const audio = menu('audio', labels.audio, (value) => engine.setAudio(Number(value)));
  const element = make('div', {
    id: 'settings',
    class: 'panel',
    role: 'group',
    'aria-label': labels.settings,
  });
  element.append(...[quality, speed, captions, audio].map((each) => each.row));
  element.hidden = true;

  speed.offer(
    speeds.map((rate) => ({ value: String(rate), label: rate === 1 ? labels.normal : `${rate}×` })),
    '1',
  );
  video.addEventListener('ratechange', () => (speed.select.value = String(video.playbackRate)));

  let listener: (there: boolean, shown: boolean) => void = () => undefined;
  let lastShown = '0';
  const showCaptions = (value: string): void => {
    captions.select.value = value;
    if (value !== '') lastShown = value;
    engine.setCaptions(value === '' ? null : Number(value));
    listener(captions.select.options.length > 1, value !== '');
  };
  const named = (tracks: readonly Track[]): Option[] =>
    tracks.map(({ label, language }, at) => ({
      value: String(at),
      label: label || language || fill(labels.track, { n: at + 1 }),
    }));

  return {
    element,
    offer(choices) {
      const { qualities } = choices;
      const byQuality = qualities.map((label, at) => ({ value: String(at), label })).reverse();
      quality.offer([{ value: automatic, label: labels.automatic }, ...byQuality], automatic);
      audio.offer(named(choices.audio), '0');
      captions.offer([{ value: '', label: labels.captionsOff }, ...named(choices.captions)], '');
      listener(choices.captions.length > 0, captions.select.value !== '');
    },
    showQuality(position) {
      const first = quality.select.options[0];
      const name = [...quality.select.options].find(({ value }) => value === String(position))?.text;
      if (first !== undefined && name !== undefined) first.text = `${labels.automatic} (${name})`;
    },
    toggleCaptions() {
      if (captions.select.options.length > 1) showCaptions(captions.select.value === '' ? lastShown : '');
    },
    onCaptions(next) {
      listener = next;
    },
  };
}

interface Menu {
  row: HTMLElement;
  select: HTMLSelectElement;
  /** Sets what can be chosen; what was chosen stays when it still can be. A menu of one is hidden. */
  offer(options: readonly Option[], fallback: string): void;
}

function menu(id: string, label: string, onChange: (value: string) => void): Menu {
  const select = make('select', { id });
  const row = make('div', { class: 'row' }, make('label', { for: id }, label), select);
  row.hidden = true;
  select.addEventListener('change', () => onChange(select.value));
  return {
    row,
    select,
    offer(options, fallback) {
      const chosen = select.value;
      select.replaceChildren(...options.map((each) => make('option', { value: each.value }, each.label)));
      select.value = options.some(({ value }) => value === chosen) && chosen !== '' ? chosen : fallback;
      row.hidden = options.length < 2;
    },
  };
}
