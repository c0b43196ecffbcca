export * from './client';
export * from './model';
export * from './types';
