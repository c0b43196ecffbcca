export * from './client';
export * from './errors';
export * from './schema';
export * from './version';
