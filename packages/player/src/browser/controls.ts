import { fill, type Texts } from '../texts.ts';
import { find, iconButton, make } from './dom.ts';
import { type Choices, type Engine } from './engine.ts';
import { listenToKeys } from './keyboard.ts';
import { createScreen } from './screen.ts';
import { createSettingsPanel } from './settings-panel.ts';
import { timeText } from './time-text.ts';

/** The controls go away when the viewer does nothing for this long. */
const idleMs = 3_000;

export interface Controls {
  offer(choices: Choices): void;
  showQuality(position: number): void;
  /** False while a message is shown: there is nothing to control then. */
  enable(on: boolean): void;
}

/** The bar, the menus and the keys over a video. */
export function createControls(video: HTMLVideoElement, engine: Engine, texts: Texts): Controls {
  const { labels } = texts;
  const player = find('player', HTMLElement);
  const screen = createScreen(player, video);
  const panel = createSettingsPanel(video, engine, texts);

  const togglePlay = (): void => {
    // Refused where the browser wants a click: the button stays as it is.
    if (video.paused) void video.play().catch(() => undefined);
    else video.pause();
  };
  const toggleMute = (): void => {
    video.muted = !video.muted;
    if (!video.muted && video.volume === 0) video.volume = 0.5;
  };
  const seek = createSeekBar(video, texts);
  const play = iconButton('play', labels.play, togglePlay);
  const large = iconButton('play', labels.play, togglePlay);
  const mute = iconButton('volume', labels.mute, toggleMute);
  const captions = iconButton('captions', labels.captions, () => panel.toggleCaptions());
  const settings = iconButton('settings', labels.settings, () => showPanel(panel.element.hidden !== false));
  const float = iconButton('pictureInPicture', labels.pictureInPicture, () => screen.toggleFloat());
  const full = iconButton('fullscreen', labels.fullscreen, () => screen.toggleFill());
  const volume = createVolume(video, labels.volume);
  large.element.className = 'large';
  captions.element.hidden = true;
  captions.element.setAttribute('aria-pressed', 'false');
  float.element.hidden = !screen.canFloat;
  full.element.hidden = !screen.canFill;
  settings.element.setAttribute('aria-expanded', 'false');
  settings.element.setAttribute('aria-controls', panel.element.id);

  const showPanel = (on: boolean): void => {
    const held = panel.element.contains(document.activeElement);
    panel.element.hidden = !on;
    settings.element.setAttribute('aria-expanded', String(on));
    if (on) panel.element.querySelector<HTMLElement>('.row:not([hidden]) select')?.focus();
    else if (held) settings.element.focus();
  };
  const showPlaying = (): void => {
    const [name, label] = video.paused
      ? (['play', labels.play] as const)
      : (['pause', labels.pause] as const);
    play.show(name, label);
    player.classList.toggle('paused', video.paused);
  };
  const showVolume = (): void => {
    const silent = video.muted || video.volume === 0;
    mute.show(silent ? 'muted' : 'volume', silent ? labels.unmute : labels.mute);
  };

  // Time runs from left to right in every language; the menus are text and do not.
  const bar = make(
    'div',
    { class: 'bar', dir: 'ltr' },
    play.element,
    mute.element,
    volume,
    seek.time,
    make('span', { class: 'space' }),
    captions.element,
    settings.element,
    float.element,
    full.element,
  );
  const spinner = make('div', { class: 'spinner', role: 'status', 'aria-label': labels.loading });
  spinner.hidden = true;
  const controls = make('div', { class: 'controls' }, make('div', { dir: 'ltr' }, seek.bar), bar);
  player.append(spinner, large.element, panel.element, controls);

  for (const event of ['play', 'pause', 'ended'] as const) video.addEventListener(event, showPlaying);
  video.addEventListener('play', () => player.classList.add('started'), { once: true });
  video.addEventListener('volumechange', showVolume);
  video.addEventListener('waiting', () => (spinner.hidden = false));
  for (const event of ['playing', 'pause', 'seeked', 'ended'] as const) {
    video.addEventListener(event, () => (spinner.hidden = true));
  }
  video.addEventListener('click', () => {
    if (panel.element.hidden) togglePlay();
    else showPanel(false);
  });
  video.addEventListener('dblclick', () => screen.toggleFill());
  document.addEventListener('fullscreenchange', () => {
    if (screen.filled) full.show('exitFullscreen', labels.exitFullscreen);
    else full.show('fullscreen', labels.fullscreen);
  });
  panel.onCaptions((there, shown) => {
    captions.element.hidden = !there;
    captions.element.setAttribute('aria-pressed', String(shown));
  });
  hideWhenIdle(player);
  showPlaying();

  let enabled = true;
  const when = <A extends unknown[]>(action: (...args: A) => void) => {
    return (...args: A): void => {
      if (enabled) action(...args);
    };
  };
  listenToKeys({
    togglePlay: when(togglePlay),
    seekBy: when((seconds) => seek.to(video.currentTime + seconds)),
    seekTo: when((fraction) => seek.to(fraction * video.duration)),
    volumeBy: when((change) => {
      video.volume = Math.min(1, Math.max(0, video.volume + change));
      video.muted = video.volume === 0;
    }),
    toggleMute: when(toggleMute),
    toggleFullscreen: when(() => screen.toggleFill()),
    toggleCaptions: when(() => panel.toggleCaptions()),
    togglePictureInPicture: when(() => screen.toggleFloat()),
    closeSettings: when(() => showPanel(false)),
  });

  return {
    offer: (choices) => panel.offer(choices),
    showQuality: (position) => panel.showQuality(position),
    enable(on) {
      enabled = on;
      spinner.hidden = true;
      showPanel(false);
      controls.hidden = !on;
      large.element.hidden = !on;
    },
  };
}

function createSeekBar(video: HTMLVideoElement, { labels }: Texts) {
  const bar = make('input', {
    ...{ type: 'range', class: 'seek', min: '0', max: '1', step: '0.1', value: '0' },
    'aria-label': labels.seek,
  });
  const time = make('span', { class: 'time' }, '0:00');
  const percent = (seconds: number): string => `${(100 * seconds) / (video.duration || 1)}%`;
  const show = (): void => {
    const { currentTime, duration, buffered } = video;
    const [now, all] = [timeText(currentTime), timeText(duration)];
    bar.max = String(Number.isFinite(duration) ? duration : 1);
    bar.value = String(currentTime);
    bar.setAttribute('aria-valuetext', fill(labels.position, { now, all }));
    bar.style.setProperty('--played', percent(currentTime));
    let end = currentTime;
    for (let i = 0; i < buffered.length; i++) {
      if (buffered.start(i) <= currentTime + 0.5) end = Math.max(end, buffered.end(i));
    }
    bar.style.setProperty('--buffered', percent(end));
    time.textContent = `${now} / ${all}`;
  };
  for (const event of ['timeupdate', 'durationchange', 'progress', 'seeking', 'seeked'] as const) {
    video.addEventListener(event, show);
  }
  const to = (seconds: number): void => {
    if (Number.isFinite(video.duration)) video.currentTime = Math.min(video.duration, Math.max(0, seconds));
  };
  bar.addEventListener('input', () => to(Number(bar.value)));
  show();
  return { bar, time, to };
}

function createVolume(video: HTMLVideoElement, label: string): HTMLInputElement {
  const volume = make('input', {
    ...{ type: 'range', class: 'volume', min: '0', max: '1', step: '0.05', value: '1' },
    'aria-label': label,
  });
  const show = (): void => {
    volume.value = String(video.muted ? 0 : video.volume);
    volume.style.setProperty('--played', `${100 * Number(volume.value)}%`);
  };
  volume.addEventListener('input', () => {
    video.volume = Number(volume.value);
    video.muted = video.volume === 0;
  });
  video.addEventListener('volumechange', show);
  show();
  return volume;
}

/** Marks the player as idle when nothing moves for a while; the style then hides the controls of a playing one. */
function hideWhenIdle(player: HTMLElement): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const awake = (): void => {
    player.classList.remove('idle');
    clearTimeout(timer);
    timer = setTimeout(() => player.classList.add('idle'), idleMs);
  };
  for (const event of ['pointermove', 'pointerdown', 'keydown', 'focusin'] as const) {
    player.addEventListener(event, awake);
  }
  awake();
}
