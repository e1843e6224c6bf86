import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';

/** Tells whoever watches a run, in a file that is written at each step, which tests run now. */
export default class ProgressReporter {
  #running = new Map();

  onTestFileStart({ path }) {
    this.#set(path, 'loading');
  }
  onTestCaseStart({ path }, { ancestorTitles, title }) {
    this.#set(path, [...ancestorTitles, title].join(' '));
  }
  onTestCaseResult({ path }, { fullName }) {
    this.#set(path, `after ${fullName}`);
  }
  onTestFileResult({ path }) {
    this.#running.delete(path);
    this.#tell();
  }

  #set(path, what) {
    this.#running.set(path, what);
    this.#tell();
  }
  #tell() {
    const file = process.env.MILLRACE_TEST_PROGRESS;
    if (!file) return;
    writeFileSync(
      file,
      [...this.#running].map(([path, what]) => `${relative('.', path)}: ${what}`).join('\n'),
    );
  }
}
