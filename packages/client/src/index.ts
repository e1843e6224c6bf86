export { ApiError } from './api-error.ts';
export { type Client, type ClientOptions, createClient } from './client.ts';
