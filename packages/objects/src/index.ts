export * from './object-store.ts';
