/** What the keys do; docs/player.md lists them. */
export interface KeyActions {
  togglePlay(): void;
  /** Moves by seconds. */
  seekBy(seconds: number): void;
  /** Moves to a place, 0 to 1. */
  seekTo(fraction: number): void;
  /** Changes the volume, which goes from 0 to 1. */
  volumeBy(change: number): void;
  toggleMute(): void;
  toggleFullscreen(): void;
  toggleCaptions(): void;
  togglePictureInPicture(): void;
  closeSettings(): void;
}

/** The action of a key, or null when it has none. */
function actionOf(key: string, actions: KeyActions): (() => void) | null {
  if (/^[0-9]$/.test(key)) return () => actions.seekTo(Number(key) / 10);
  switch (key.toLowerCase()) {
    case ' ':
    case 'k':
      return () => actions.togglePlay();
    case 'arrowleft':
      return () => actions.seekBy(-5);
    case 'arrowright':
      return () => actions.seekBy(5);
    case 'j':
      return () => actions.seekBy(-10);
    case 'l':
      return () => actions.seekBy(10);
    case 'arrowup':
      return () => actions.volumeBy(0.05);
    case 'arrowdown':
      return () => actions.volumeBy(-0.05);
    case 'home':
      return () => actions.seekTo(0);
    case 'end':
      return () => actions.seekTo(1);
    case 'm':
      return () => actions.toggleMute();
    case 'f':
      return () => actions.toggleFullscreen();
    case 'c':
      return () => actions.toggleCaptions();
    case 'i':
      return () => actions.togglePictureInPicture();
    case 'escape':
      return () => actions.closeSettings();
    default:
      return null;
  }
}

/** A control that has the focus keeps the keys that it uses itself. */
function usesItself(target: EventTarget | null, key: string): boolean {
  if (target instanceof HTMLSelectElement) return key !== 'Escape';
  if (target instanceof HTMLButtonElement) return key === ' ';
  return target instanceof HTMLInputElement && /^(Arrow|Home|End|Page)/.test(key);
}

export function listenToKeys(actions: KeyActions): void {
  document.addEventListener('keydown', (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || usesItself(event.target, event.key)) return;
    const action = actionOf(event.key, actions);
    if (action === null) return;
    event.preventDefault();
    action();
  });
}
