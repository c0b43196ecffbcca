"""What of AWS the features of admins need: the part of the table in `features` that says who may change domains and clusters."""

from __future__ import annotations

from hyperpod_jlab.aws.feature import (
    CLUSTER,
    DOMAIN,
    EKS,
    EVERY,
    GROUP,
    INTERFACE,
    LIFECYCLE,
    PROFILE,
    ROLE,
    SCRIPTS,
    SPACE,
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
    Permission("sagemaker:DescribeCluster", CLUSTER, "no --cluster: name the --file-system"),
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
    Permission(
        "ec2:DescribeInstanceTypes",
        EVERY,
        "EFA and addresses are taken from the package's table, threads are not checked",
    ),
    Permission("ec2:DescribeInstanceTypeOfferings", EVERY, "zones of types are not checked"),
    Permission("fsx:DescribeFileSystems", EVERY, "file systems are not checked"),
    Permission("s3:ListBucket", SCRIPTS, "it is not known whether life cycle scripts are there"),
    Permission("iam:GetRole", ROLE, "it is not known whom roles trust"),
    Permission("servicequotas:ListServiceQuotas", EVERY, "quotas are not checked"),
    Permission("eks:DescribeCluster", EKS, "the EKS cluster is not checked"),
)

ADMIN_FEATURES: tuple[Feature, ...] = (
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
