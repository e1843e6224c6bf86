import { type Report } from '@millrace/contract';
import { insertReport } from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';
import { idempotently } from '../idempotency.ts';

/**
 * A report is an alert for the operating team: a line at `warn` and a counter that an alert rule stands on, once
 * for each report that is filed and not for replays of one.
 */
export function reportHandlers(deps: FeatureDeps): Pick<ApiHandlers, 'createReport'> {
  const { store, logger, metrics } = deps;
  const filed = metrics.counter('millrace_reports_total', 'Reports filed; each wants a look.');
  return {
    createReport: ({ caller: { accountId }, project, params: { videoId }, body, ...call }) =>
      idempotently(
        deps,
        { accountId, call, status: 201 },
        {
          run: async (keep) => {
            const { reason, detail = null } = body;
            const report = await store.transaction(async (tx) => {
              const inserted = await insertReport(tx, { projectId: project.id, videoId, reason, detail });
              await keep(tx, inserted);
              return inserted;
            });
            filed.inc();
            logger.warn({ reportId: report.id, videoId, accountId, reason }, 'video reported');
            return report;
          },
          replay: (report: Report) => Promise.resolve(report),
        },
      ),
  };
}
