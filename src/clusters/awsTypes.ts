import type { Schema } from '../api';

/** What AWS knows of a cluster. What is null is not known, or not yet. */
export type IHyperpodCluster = Schema<'HyperpodCluster'>;

/** Whether one can submit to a cluster from the server's machine. */
export type IReach = Schema<'HyperpodReach'>;

/** A setting of a cluster; its name is AWS' where this version does not know it. */
export type ISetting = Schema<'HyperpodSetting'>;

/** An instance group; what is null AWS does not say. */
export type IHyperpodGroup = Schema<'HyperpodGroup'>;

/** A place in AWS' web console. */
export type LinkKind = keyof Schema<'ClusterLinks'>;
