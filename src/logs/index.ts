export * from './client';
export * from './feed';
export * from './logView';
export * from './socket';
export * from './types';
export * from './viewModel';
export * from './window';
