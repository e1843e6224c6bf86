export { type ApiConfig, apiConfig } from './config.ts';
export { type ApiDeps } from './deps.ts';
export { createOperator, type Operator } from './operator.ts';
export { type Api, createApi } from './service.ts';
export { encodePauses, pauseEncodes, resumeEncodes } from './admin/encoding.ts';
export { holdVideo, liftVideo, removeVideo } from './admin/team.ts';
