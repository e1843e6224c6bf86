export default class ProgressReporter {
  onTestFileStart(test: { path: string }): void;
  onTestCaseStart(test: { path: string }, start: { ancestorTitles: readonly string[]; title: string }): void;
  onTestCaseResult(test: { path: string }, result: { fullName: string }): void;
  onTestFileResult(test: { path: string }): void;
}
