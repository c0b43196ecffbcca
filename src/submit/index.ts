export * from './source';
export * from './types';
