export * from './delivery-index.ts';
export * from './internal.ts';
export * from './qualities.ts';
export * from './topics.ts';
