export { type ReconcilerConfig, reconcilerConfig } from './config.ts';
export { type ReconcileLoop } from './loops/loop.ts';
export { createReconciler, type ReconcilerDeps } from './service.ts';
