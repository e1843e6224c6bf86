export * from './delivery-index.ts';
export * from './qualities.ts';
export * from './topics.ts';
