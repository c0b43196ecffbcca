/**
 * Types of the REST API, the log socket and the events (docs/rest-api.md).
 *
 * Made by scripts/make_api_types.py from the OpenAPI document: do not edit.
 */

/** What this server asked AWS for in the last minute, tries and pages included, the most frequent operation first; `total` counts from the server's start. */
export interface IAwsCalls {
  readonly calls: number;
  readonly total: number;
  readonly operations: readonly IAwsOperationCalls[];
}

/** Emitted when the number of requests to AWS in the last minute changes. Holds no names of clusters, accounts or users. */
export interface IAwsCallsEvent {
  readonly calls: number;
  readonly total: number;
  readonly operations: readonly Readonly<Record<string, unknown>>[];
}

/** Requests of one operation. */
export interface IAwsOperationCalls {
  /** The service by boto3's name, such as `sagemaker`. */
  readonly service: string;
  /** The operation by the API's name, such as `DescribeCluster`. */
  readonly operation: string;
  /** How many. */
  readonly calls: number;
}

/** Regions with SageMaker of one AWS partition, as far as this boto3 knows them. `default` is the one that is asked where nobody names one; null where none is known. */
export interface IAwsRegions {
  readonly default: string | null;
  readonly regions: readonly string[];
}
