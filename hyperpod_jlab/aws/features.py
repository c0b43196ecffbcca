"""What of AWS each feature needs: one table, from which docs/permissions.md, ``hpj admin policy`` and the tests are made.

Who adds a call of AWS adds its action here, and how to run it to tests/aws/feature_runs.py.
"""

from __future__ import annotations

from hyperpod_jlab.aws.feature import (
    ADDON,
    CLUSTER,
    DOMAIN,
    EKS,
    EVERY,
    FSX,
    FSX_TASK,
    GROUP,
    INTERFACE,
    LIFECYCLE,
    LOG,
    LOGS,
    POLICY,
    PROFILE,
    QUOTA,
    ROLE,
    SCRIPTS,
    SPACE,
    WORKSPACE,
    Feature,
    Permission,
)

_WIRING = (
    Permission("sagemaker:DescribeDomain", DOMAIN, "no plan"),
    Permission("sagemaker:ListUserProfiles", EVERY, "no plan"),
    Permission("sagemaker:DescribeUserProfile", PROFILE, "no plan"),
    Permission("sagemaker:ListSpaces", EVERY, "no plan"),
    Permission("sagemaker:DescribeSpace", SPACE, "no plan"),
    Permission("sagemaker:ListApps", EVERY, "no plan"),
    Permission("sagemaker:ListTags", EVERY, "no plan: tags say what is ours"),
    Permission("fsx:DescribeFileSystems", EVERY, "no plan"),
    Permission("ec2:DescribeNetworkInterfaces", EVERY, "no plan"),
    Permission("ec2:DescribeSecurityGroups", EVERY, "no plan"),
)

_APPLYING = (
    *_WIRING,
    Permission("sagemaker:UpdateDomain", DOMAIN, "nothing for profiles to come"),
    Permission("sagemaker:UpdateUserProfile", PROFILE, "nothing for profiles"),
    Permission("sagemaker:UpdateSpace", SPACE, "nothing for spaces"),
    Permission("sagemaker:AddTags", EVERY, "nothing: what is set is marked as ours first"),
    Permission("sagemaker:DeleteTags", EVERY, "marks stay where nothing is set any more"),
    Permission(
        "ec2:ModifyNetworkInterfaceAttribute",
        INTERFACE,
        "Studio does not reach the file system",
    ),
    # IAM asks about the interface, and about each group that it gets (service authorization reference of EC2).
    Permission(
        "ec2:ModifyNetworkInterfaceAttribute",
        GROUP,
        "Studio does not reach the file system",
    ),
    Permission("ec2:CreateTags", INTERFACE, "Studio does not reach the file system"),
    Permission("ec2:DeleteTags", INTERFACE, "marks stay where nothing is set any more"),
    Permission("sagemaker:ListStudioLifecycleConfigs", EVERY, "no destroy: it takes ours away"),
)

_VALIDATION = (
    Permission("sagemaker:DescribeCluster", CLUSTER, "it is not known whether a name is free"),
    Permission("ec2:DescribeSubnets", EVERY, "subnets are not checked"),
    Permission("ec2:DescribeRouteTables", EVERY, "it is not known whether subnets are private"),
    Permission("ec2:DescribeSecurityGroups", EVERY, "security groups are not checked"),
    Permission("ec2:DescribeNetworkInterfaces", EVERY, "ways to file systems are not checked"),
    Permission("ec2:DescribeInstanceTypes", EVERY, "EFA and threads are not checked"),
    Permission("ec2:DescribeInstanceTypeOfferings", EVERY, "zones of types are not checked"),
    Permission("fsx:DescribeFileSystems", EVERY, "file systems are not checked"),
    Permission("s3:ListBucket", SCRIPTS, "it is not known whether life cycle scripts are there"),
    Permission("iam:GetRole", ROLE, "it is not known whom roles trust"),
    Permission("servicequotas:ListServiceQuotas", EVERY, "quotas are not checked"),
    Permission("eks:DescribeCluster", EKS, "the EKS cluster is not checked"),
)

FEATURES: tuple[Feature, ...] = (
    Feature(
        "clusters",
        "HyperPod clusters",
        ("hpj clusters --hyperpod", "hpj config add", "hpj doctor"),
        (
            Permission("sagemaker:ListClusters", EVERY, "no list of clusters"),
            Permission(
                "sagemaker:DescribeCluster",
                CLUSTER,
                "clusters are listed without orchestrator, instance groups and file systems",
            ),
            Permission(
                "eks:DescribeCluster",
                EKS,
                "it is not known whether one can submit to a cluster on EKS from here",
            ),
            Permission(
                "sagemaker:ListClusterNodes",
                CLUSTER,
                "it is not known whether the Slurm on this machine is the cluster's",
            ),
        ),
    ),
    Feature(
        "nodes",
        "Nodes of a HyperPod cluster",
        ("hpj nodes --hyperpod NAME",),
        (
            Permission("sagemaker:ListClusterNodes", CLUSTER, "no nodes"),
            Permission(
                "sagemaker:DescribeCluster", CLUSTER, "it is not known which nodes are controllers"
            ),
        ),
    ),
    Feature(
        "space",
        "Whose a space of Studio is",
        ("hpj doctor",),
        (
            Permission(
                "sagemaker:DescribeSpace",
                SPACE,
                "it is not known whose a space is, and whether it is shared",
            ),
        ),
    ),
    Feature(
        "doctor",
        "The checks of hpj doctor",
        ("hpj doctor",),
        (
            Permission("sagemaker:DescribeDomain", DOMAIN, "the domain's network is not checked"),
            Permission(
                "sagemaker:DescribeUserProfile",
                PROFILE,
                "it is not known which file systems a profile may mount",
            ),
            Permission(
                "sagemaker:DescribeSpace", SPACE, "it is not known what a space is to mount"
            ),
            Permission("sagemaker:ListClusters", EVERY, "no check of clusters at AWS"),
            Permission(
                "sagemaker:DescribeCluster", CLUSTER, "the clusters' network is not checked"
            ),
            Permission("fsx:DescribeFileSystems", EVERY, "file systems' networks are not checked"),
            Permission("ec2:DescribeNetworkInterfaces", EVERY, "interfaces are not checked"),
            Permission("ec2:DescribeSecurityGroups", EVERY, "security groups are not checked"),
        ),
    ),
    Feature(
        "events",
        "Events of a HyperPod cluster",
        ("hpj events --hyperpod NAME", "the page in JupyterLab"),
        (
            Permission("sagemaker:ListClusterEvents", CLUSTER, "no events"),
            Permission("sagemaker:DescribeClusterEvent", CLUSTER, "no details of an event"),
            Permission(
                "sagemaker:DescribeCluster",
                CLUSTER,
                "no journal; of a cluster that keeps no events it is said in AWS' words",
                optional=True,
            ),
        ),
    ),
    Feature(
        "logs",
        "Logs of nodes",
        ("hpj node-logs --hyperpod NAME", "the log viewer in JupyterLab"),
        (
            Permission("sagemaker:DescribeCluster", CLUSTER, "no logs: they are named by its id"),
            Permission(
                "sagemaker:ListClusterNodes",
                CLUSTER,
                "no logs of a node, but those that --stream names",
            ),
            Permission(
                "logs:DescribeLogStreams",
                LOGS,
                "no list of logs, and none of nodes that were replaced",
            ),
            Permission("logs:GetLogEvents", LOG, "no lines"),
        ),
    ),
    Feature(
        "metrics",
        "Metrics of clusters and nodes",
        ("hpj metrics --hyperpod NAME",),
        (
            Permission(
                "sagemaker:DescribeCluster",
                CLUSTER,
                "no metrics: they have its id or its EKS cluster",
            ),
            Permission("sagemaker:ListClusterNodes", CLUSTER, "none of one node"),
            Permission("cloudwatch:GetMetricData", EVERY, "no metrics"),
            Permission("cloudwatch:ListMetrics", EVERY, "none of single nodes"),
        ),
    ),
    Feature(
        "prometheus",
        "Metrics of clusters, nodes and runs in Amazon Managed Service for Prometheus",
        ("hpj metrics --hyperpod NAME", "hpj metrics RUN"),
        (
            Permission("sagemaker:DescribeCluster", CLUSTER, "no metrics"),
            Permission(
                "sagemaker:ListClusterNodes",
                CLUSTER,
                "only those of runs: which series are the cluster's is known by its nodes",
            ),
            Permission(
                "eks:DescribeAddon",
                ADDON,
                "the workspace of HyperPod's observability add-on is not known, only those that the configuration names",
            ),
            Permission("aps:QueryMetrics", WORKSPACE, "only what CloudWatch has"),
        ),
    ),
    Feature(
        "storage",
        "File systems and partitions",
        ("hpj storage",),
        (
            Permission("fsx:DescribeFileSystems", EVERY, "nothing of what FSx knows of them"),
            Permission(
                "fsx:DescribeDataRepositoryAssociations", EVERY, "links to S3 are not known"
            ),
            Permission(
                "sagemaker:DescribeSpace",
                SPACE,
                "whether it is shared is known by Studio's environment only",
            ),
            Permission(
                "sagemaker:DescribeUserProfile", PROFILE, "the user number is taken for everybody's"
            ),
            Permission(
                "sagemaker:DescribeCluster",
                CLUSTER,
                "it is not known whether clusters of the configuration mount the file system",
            ),
        ),
    ),
    Feature(
        "governance",
        "Task governance of a HyperPod cluster",
        ("hpj quotas --hyperpod NAME",),
        (
            Permission(
                "sagemaker:DescribeCluster", CLUSTER, "nothing: quotas are found by its ARN"
            ),
            Permission("sagemaker:ListComputeQuotas", EVERY, "no quotas of teams"),
            Permission("sagemaker:DescribeComputeQuota", QUOTA, "it is not known why one failed"),
            Permission("sagemaker:ListClusterSchedulerConfigs", EVERY, "no policy"),
            Permission("sagemaker:DescribeClusterSchedulerConfig", POLICY, "no priority classes"),
        ),
    ),
    Feature(
        "storage-tasks",
        "Files of file systems that are linked to S3, by AWS",
        ("hpj storage export --by aws", "hpj storage import", "hpj storage tasks"),
        (
            Permission("fsx:CreateDataRepositoryTask", FSX, "no export, import or release"),
            Permission("fsx:DescribeDataRepositoryTasks", EVERY, "no list of tasks"),
            Permission("fsx:CancelDataRepositoryTask", FSX_TASK, "a task cannot be cancelled"),
            Permission(
                "fsx:DescribeFileSystems",
                EVERY,
                "nothing where the mount names the file system, as Studio's does",
                optional=True,
            ),
            Permission(
                "fsx:DescribeDataRepositoryAssociations",
                EVERY,
                "no import; of what is not linked AWS says so, later",
            ),
        ),
        changes=True,
    ),
    Feature(
        "node-actions",
        "Reboot and replace nodes",
        ("hpj node reboot", "hpj node replace", "the nodes' page in JupyterLab"),
        (
            Permission("sagemaker:BatchRebootClusterNodes", CLUSTER, "no reboot"),
            Permission("sagemaker:BatchReplaceClusterNodes", CLUSTER, "no replacement"),
            Permission("sagemaker:ListClusterNodes", CLUSTER, "nodes cannot be found"),
            Permission(
                "sagemaker:DescribeCluster",
                CLUSTER,
                "it is not known beforehand which nodes are controllers",
            ),
        ),
        changes=True,
    ),
    Feature(
        "terminal",
        "A terminal on a node",
        ("hpj terminal --hyperpod NAME", "the nodes' page in JupyterLab"),
        (
            Permission("sagemaker:DescribeCluster", CLUSTER, "no command: it has the cluster's id"),
            Permission("sagemaker:ListClusterNodes", CLUSTER, "no command: the node is not found"),
            # The service authorization reference names no cluster of SageMaker here; Systems Manager is asked for one.
            Permission("ssm:StartSession", CLUSTER, "the command opens no terminal"),
        ),
        changes=True,
    ),
    Feature(
        "page",
        "The page of a HyperPod cluster",
        ("the page in JupyterLab",),
        (
            Permission("sagemaker:DescribeCluster", CLUSTER, "no page"),
            Permission("sagemaker:ListClusterNodes", CLUSTER, "no nodes"),
            Permission("sagemaker:ListTags", CLUSTER, "no tags"),
        ),
    ),
    Feature(
        "eks",
        "Kubernetes clusters by their names in EKS",
        ("hpj nodes --cluster NAME",),
        (
            Permission(
                "eks:DescribeCluster",
                EKS,
                'no way to a cluster that the configuration names with eks = "NAME"',
            ),
        ),
    ),
    Feature(
        "admin-plan",
        "What a Studio domain and a file system have to do with each other",
        ("`hpj admin plan`", "`hpj admin status`"),
        _WIRING,
    ),
    Feature(
        "admin-apply",
        "Give the people of a Studio domain a file system, and take it back",
        ("`hpj admin apply`", "`hpj admin destroy`"),
        _APPLYING,
        changes=True,
    ),
    Feature(
        "admin-lifecycle",
        "Attach lifecycle configurations in a Studio domain, and take them back",
        (
            "`hpj admin plan --lifecycle-file`",
            "`hpj admin apply --lifecycle-file`",
            "`hpj admin destroy`",
        ),
        (
            *_APPLYING,
            Permission(
                "sagemaker:DescribeStudioLifecycleConfig",
                LIFECYCLE,
                "no plan once one is there: its script is compared",
            ),
            Permission("sagemaker:CreateStudioLifecycleConfig", LIFECYCLE, "no scripts"),
            Permission("sagemaker:DeleteStudioLifecycleConfig", LIFECYCLE, "old scripts stay"),
        ),
        changes=True,
    ),
    Feature(
        "admin-cluster-validate",
        "Check the configuration of a HyperPod cluster",
        ("`hpj admin validate`", "`hpj admin create-cluster`"),
        _VALIDATION,
    ),
    Feature(
        "admin-cluster-change",
        "Make, change and delete HyperPod clusters",
        (
            "`hpj admin create-cluster`",
            "`hpj admin update-cluster`",
            "`hpj admin delete-cluster`",
        ),
        (
            Permission("sagemaker:CreateCluster", CLUSTER, "no new clusters"),
            Permission("sagemaker:UpdateCluster", CLUSTER, "no changes"),
            Permission("sagemaker:DeleteCluster", CLUSTER, "no deletion"),
            Permission("iam:PassRole", ROLE, "no new clusters: instances get a role"),
            Permission("sagemaker:DescribeCluster", CLUSTER, "no changes, no deletion, no --wait"),
            Permission("sagemaker:ListClusterEvents", CLUSTER, "no events with --wait"),
            Permission("sagemaker:DescribeClusterEvent", CLUSTER, "no reasons of failures"),
        ),
        changes=True,
    ),
    Feature(
        "admin-page",
        "Whether the Admin page is offered, and what can be chosen there; what it does needs `admin-apply` besides",
        ("the Admin page in JupyterLab",),
        (
            Permission("sagemaker:ListUserProfiles", EVERY, "the page is not offered"),
            Permission(
                "sagemaker:UpdateUserProfile",
                PROFILE,
                "the page is not offered: it is tried on a profile that is not there",
            ),
            Permission(
                "sagemaker:ListDomains",
                EVERY,
                "no domain but this space's own can be chosen; the page is not offered outside of Studio",
            ),
            Permission("fsx:DescribeFileSystems", EVERY, "file systems have no names"),
            Permission("sagemaker:ListClusters", EVERY, "file systems of clusters are not told"),
            Permission(
                "sagemaker:DescribeCluster", CLUSTER, "file systems of clusters are not told"
            ),
        ),
        changes=True,
    ),
)
"""All features that call AWS."""
