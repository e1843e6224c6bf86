import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';

const names = ['chromium', 'chromium-browser', 'google-chrome'];

/** The browser that set-up looks for on the path. @throws Error when there is none */
function executable(): string {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  for (const path of names.flatMap((name) => folders.map((folder) => join(folder, name)))) {
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not this one.
    }
  }
  throw new Error(`none of ${names.join(', ')} is on the path`);
}

/** Starts a real browser without a window, which talks to nobody by itself. */
export const launchChromium = (flags: readonly string[]): Promise<Browser> =>
  chromium.launch({
    executablePath: executable(),
    chromiumSandbox: process.getuid?.() !== 0,
    args: [...flags, '--disable-background-networking', '--mute-audio', '--disable-gpu'],
  });
