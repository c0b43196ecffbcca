/**
 * Types of the REST API, the log socket and the events (docs/rest-api.md).
 *
 * Made by scripts/make_api_types.py from the OpenAPI document: do not edit.
 */

export * from './admin';
export * from './aws';
export * from './base';
export * from './clusters';
export * from './doctor';
export * from './governance';
export * from './hyperpod';
export * from './lifecycle';
export * from './logs';
export * from './runs';
export * from './spec';
export * from './storage';
export * from './telemetry';
