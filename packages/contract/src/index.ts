export * from './delivery-index.ts';
export * from './errors.ts';
export * from './internal.ts';
export * from './qualities.ts';
export * from './resources.ts';
export * from './routes/index.ts';
export * from './text.ts';
export * from './topics.ts';
