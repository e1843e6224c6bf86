import { type Position } from '@millrace/domain';
import { listAudit, listEncodeJobs, listReports } from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';
import { readPage } from '../paging.ts';

export type ListHandlers = Pick<ApiHandlers, 'listReports' | 'listEncodeJobs' | 'listAudit'>;

const dated = <Row extends Position>(row: Row): Omit<Row, 'createdAt'> & { createdAt: string } => ({
  ...row,
  createdAt: row.createdAt.toISOString(),
});

/** What the team reads. */
export const listHandlers = ({ store, config }: FeatureDeps): ListHandlers => ({
  listReports: ({ query: { limit, cursor } }) =>
    readPage(config.CURSOR_KEYS, {
      scope: { operationId: 'listReports', owner: 'team' },
      query: { limit, cursor },
      read: (limit, after) => listReports(store, { limit, after }),
      toResource: dated,
    }),

  listEncodeJobs: ({ query: { limit, cursor, state } }) =>
    readPage(config.CURSOR_KEYS, {
      scope: { operationId: 'listEncodeJobs', owner: 'team', filters: { state } },
      query: { limit, cursor },
      read: (limit, after) => listEncodeJobs(store, { limit, after }, { state: state ?? null }),
      toResource: (row) => ({ ...dated(row), finishedAt: row.finishedAt?.toISOString() ?? null }),
    }),

  listAudit: ({ query: { limit, cursor, subject } }) =>
    readPage(config.CURSOR_KEYS, {
      scope: { operationId: 'listAudit', owner: 'team', filters: { subject } },
      query: { limit, cursor },
      read: (limit, after) => listAudit(store, { limit, after }, { subject: subject ?? null }),
      toResource: dated,
    }),
});
