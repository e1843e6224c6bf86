import { type OperationId } from '@millrace/contract';
import { type Page } from 'playwright-core';
import { dashboard } from './office.ts';
import { type Answered, type Input } from './steps.ts';

/** Somebody at the development console. */
export interface Clerk {
  page: Page;
  /** Opens the console. */
  come(): Promise<void>;
  /** Signs in at the provider's form. */
  signIn(provider: 'google' | 'microsoft', email: string): Promise<void>;
  /** What the console says of who is signed in. */
  who(): Promise<string>;
  /** Fills the form of a route and sends it. Fields that are not told stay as the console fills them. */
  send(id: OperationId, input: Input): Promise<Answered>;
  /** Sends a file to the parts of the upload that was just answered; answers what the console notes of them. */
  putParts(file: string): Promise<unknown>;
}

export function createClerk(page: Page): Clerk {
  const who = page.locator('#who');
  /** Forms have fields of the same names, and a new one comes a moment after the address has changed. */
  const formOf = (id: OperationId): Promise<void> =>
    page.locator(`#routes a[href="#${id}"][aria-current]`).waitFor();
  return {
    page,
    async come() {
      await page.goto(`${dashboard}/dev/`);
      await page.getByText(/^(Signed in as|Not signed in)/).waitFor();
    },
    async signIn(provider, email) {
      await page.getByRole('link', { name: `Sign in as by ${provider}` }).click();
      await page.getByLabel('E-mail address', { exact: true }).fill(email);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText('Signed in as').waitFor();
    },
    who: () => who.innerText(),
    async send(id, { params = {}, query = {}, body, raw }) {
      await page.locator(`#routes a[href="#${id}"]`).click();
      await formOf(id);
      for (const [name, value] of Object.entries({ ...params, ...query }))
        await page.locator(`#field-${name}`).fill(value);
      const text = raw ?? (body === undefined ? undefined : JSON.stringify(body));
      if (text !== undefined) await page.locator('#field-body').fill(text);
      await page.getByRole('button', { name: 'Send', exact: true }).click();
      const said = await page.locator('#status').innerText();
      const status = Number.parseInt(said, 10);
      if (Number.isNaN(status)) throw new Error(`${id} could not be called: ${said}`);
      const shown = page.locator('#body');
      const answered = (await shown.count()) === 0 ? '{}' : await shown.innerText();
      return { status, body: JSON.parse(answered) as Record<string, unknown> };
    },
    async putParts(file) {
      await page.locator('#parts-file').setInputFiles(file);
      await page.getByRole('button', { name: 'Send its parts' }).click();
      await formOf('completeUpload');
      const body = await page.locator('#field-body').inputValue();
      return (JSON.parse(body) as { parts: unknown }).parts;
    },
  };
}
