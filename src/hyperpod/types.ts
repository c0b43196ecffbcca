import type { Schema } from '../api';

/** The first HyperPod clusters of the account. */
export type IHyperpodList = Schema<'HyperpodClusters'>;

/** Of when something is that AWS told, why there is nothing newer, whether more is on its way, and what is to be said of it. */
export type IAged = Pick<
  IHyperpodList,
  'as_of' | 'problem' | 'loading' | 'notes'
>;

/** A HyperPod cluster in the list. What is null is not known, or not yet. */
export type IHyperpodCluster = Schema<'HyperpodClusterRow'>;

/** Whether one can submit to a cluster from the server's machine. */
export type IReach = Schema<'HyperpodReach'>;

/** A setting of a cluster; its name is AWS' where this version does not know it. */
export type ISetting = Schema<'HyperpodSetting'>;

/** An instance group; what is null AWS does not say. */
export type IHyperpodGroup = Schema<'HyperpodGroup'>;

/** A place in AWS' web console. */
export type LinkKind = keyof Schema<'HyperpodLinks'>;

/** A HyperPod cluster with all that its description tells. */
export type IHyperpodDetail = Schema<'HyperpodClusterAnswer'>;
