export * from './client';
export * from './model';
export * from './types';
export * from './words';
