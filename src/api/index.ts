export * from './client';
export * from './decoding';
export * from './errors';
export * from './version';
