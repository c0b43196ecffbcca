"""Facts about HyperPod clusters and what Systems Manager, CloudWatch, EC2 and FSx know of them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from hyperpod_jlab.admin.verify.models import CheckContext, Fact, FactFinding, holds, unknown, wrong
from hyperpod_jlab.aws.clusters import node_target
from hyperpod_jlab.aws.consoles import log_group
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import DeniedError, NotFoundError
from hyperpod_jlab.core.hyperpod import HyperpodCluster
from hyperpod_jlab.features.metrics import aws as metrics
from hyperpod_jlab.features.metrics.models import TimeRange
from hyperpod_jlab.features.metrics.prometheus import ADDON, query_range, workspace_of_addon
from hyperpod_jlab.features.node_logs.aws import list_logs

_KUBERNETES = "hyperpod_jlab/engines/kubernetes"

CLUSTER_FACTS = (
    Fact(
        "node-target",
        "Systems Manager calls a node `sagemaker-cluster:CLUSTERID_GROUP-INSTANCE`.",
        ("hyperpod_jlab/features/terminal/service.py", "hyperpod_jlab/aws/clusters.py"),
        "`hpj terminal` opens no terminal on a node.",
        "read",
        "Asks for the connection status of some nodes under that name. No session is started.",
    ),
    Fact(
        "session-on-controller",
        "A session with the document `AWS-StartInteractiveCommand` on a controller runs its command as root, and its data channel takes what the function sends.",
        ("hyperpod_jlab/aws/session_manager.py", "hyperpod_jlab/admin/fsx/folders.py"),
        "The stack cannot make folders of new profiles on a Slurm cluster. Set `Folders=timer`: a timer on the controller makes them.",
        "by hand",
        "With the stack and `Folders=cluster`, create a user profile. Look at the function's log and at the folder.",
    ),
    Fact(
        "session-names",
        "The ARN of a session that an assumed role starts begins with `session/${aws:userid}-`.",
        ("hyperpod_jlab/aws/permissions.py", "cloudformation/roles.yaml"),
        "People cannot end or resume their sessions.",
        "by hand",
        "Open a terminal with a role that has only `hpj admin policy terminal`. End it with `aws ssm terminate-session --session-id ID`.",
    ),
    Fact(
        "run-as-of-sessions",
        "Without Run As a session on a node is of `root`, or of a user that may become `root`.",
        ("hyperpod_jlab/features/doctor/aws.py",),
        "The doctor warns of a right that nobody has.",
        "by hand",
        "Turn Run As off in Session Manager's preferences, open `hpj terminal NODE`, then: `id; sudo -n id`.",
    ),
    Fact(
        "terminal-rights",
        "The policy `terminal` has all rights that Session Manager asks for.",
        ("hyperpod_jlab/aws/permissions.py", "cloudformation/roles.yaml"),
        "`hpj terminal` is refused, with the action that is missing.",
        "by hand",
        "Give a role what `hpj admin policy terminal` prints and nothing else. Open a terminal with it.",
    ),
    Fact(
        "addresses-per-instance",
        "An instance takes as many addresses of its subnet as AWS' guide says (a P5: 32 with Slurm, 81 on EKS). The rule is stated for P5 and taken for all types.",
        (
            "hyperpod_jlab/core/instance_types.py",
            "hyperpod_jlab/admin/cluster_config/rules.py",
        ),
        "`hpj admin validate` says that a subnet is large enough, and instances fail to start.",
        "by hand",
        "`aws ec2 describe-subnets --subnet-ids ID --query 'Subnets[].AvailableIpAddressCount'` before and after a group grows by one instance.",
    ),
    Fact(
        "ec2-knows-types",
        "EC2 describes each of HyperPod's instance types under its name without `ml.`.",
        (
            "hyperpod_jlab/aws/clusters.py",
            "hyperpod_jlab/admin/cluster_config/facts.py",
        ),
        "The facts of that type come from the package's own table, or are unknown.",
        "read",
        "Asks EC2 for the types of your clusters.",
    ),
    Fact(
        "node-log-names",
        "Nodes write to the log group `/aws/sagemaker/Clusters/NAME/ID`, in streams `KIND/GROUP/INSTANCE`.",
        ("hyperpod_jlab/aws/consoles.py", "hyperpod_jlab/features/node_logs/aws.py"),
        "`hpj node-logs` finds no logs.",
        "read",
        "Lists the streams of your clusters' log groups.",
    ),
    Fact(
        "slurm-metrics",
        "CloudWatch has metrics of a Slurm cluster in `/aws/sagemaker/Clusters`, by `ClusterId`.",
        ("hyperpod_jlab/features/metrics/aws.py",),
        "`hpj metrics` has nothing of Slurm clusters, unless a Prometheus workspace is configured.",
        "read",
        "Lists the metrics of your Slurm clusters.",
    ),
    Fact(
        "script-bucket-name",
        "`CreateCluster` takes lifecycle scripts from a bucket of any name that the instances' role may read.",
        ("hyperpod_jlab/admin/cluster_config/rules.py",),
        "`hpj admin validate` judges a bucket whose name does not begin with `sagemaker-` wrongly.",
        "by hand",
        "Create a small cluster with scripts in such a bucket, and a role that may read it.",
    ),
    Fact(
        "cluster-states",
        "A cluster goes through the states that AWS' guide names, in that order, and a group's failure rolls it back.",
        ("hyperpod_jlab/admin/cluster_config/clusters.py", "testbed/aws/lifecycle.py"),
        "`hpj admin create-cluster --wait` tells progress in another order, or ends late.",
        "by hand",
        "`hpj admin create-cluster --wait` once with good scripts and once with a script that ends with 1.",
    ),
    Fact(
        "slurm-auto-resume",
        "On HyperPod nodes `srun` takes `--auto-resume=1`, and the path `/opt/sagemaker_cluster` tells such a node.",
        ("hyperpod_jlab/engines/slurm/render.py",),
        "Runs fail at once with an unknown option, or are not resumed after a node was replaced.",
        "by hand",
        "On a node: `ls /opt/sagemaker_cluster`. Submit a run of two nodes, and replace one (`hpj node replace`).",
    ),
    Fact(
        "login-nodes-answer-ssh",
        "Login nodes of a cluster with API-driven Slurm configuration take ssh under their `PrivateDnsHostname`.",
        (
            "hyperpod_jlab/aws/clusters.py",
            "hyperpod_jlab/engines/slurm/ssh.py",
        ),
        "Login nodes that AWS lists cannot be used. Name the hosts in the configuration.",
        "by hand",
        "From a space: `ssh USER@HOST true`, with the host that `hpj nodes NAME` shows for a login node.",
    ),
    Fact(
        "one-task-a-file-system",
        "FSx runs one data repository task of a file system at a time, and takes paths from the file system's root.",
        ("hyperpod_jlab/features/storage/aws.py",),
        "`hpj storage export` and `import` are refused, with FSx' reason.",
        "by hand",
        "`hpj storage export FOLDER --by aws` twice in a row, then `hpj storage tasks`.",
    ),
    Fact(
        "eks-node-metrics",
        "Container Insights names nodes of HyperPod by `InstanceId` and `NodeName` (`hyperpod-INSTANCE`), with `hyperpod_node_health_status_*`.",
        ("hyperpod_jlab/features/metrics/aws.py",),
        "`hpj metrics --by-node` has no nodes of EKS clusters.",
        "read",
        "Lists the metrics of your EKS clusters.",
    ),
    Fact(
        "observability-labels",
        "The observability add-on's GPU metrics carry the node's name in `Hostname`, and `gpu`.",
        ("hyperpod_jlab/features/metrics/prometheus.py",),
        "`hpj metrics` shows no GPUs of clusters with the add-on.",
        "read",
        "Queries the add-on's workspace for `DCGM_FI_DEV_GPU_UTIL` of the last minutes, and looks at the labels.",
    ),
    Fact(
        "addon-right",
        "`eks:DescribeAddon` asks for the right on `addon/CLUSTER/*`.",
        ("hyperpod_jlab/aws/permissions.py", "cloudformation/roles.yaml"),
        "Without the right on `cluster/CLUSTER` the workspace of the add-on is not found.",
        "read",
        "With `--as-role`: calls it with a session that has the right on the add-on only, then on the cluster only.",
    ),
    Fact(
        "auto-resume-conditions",
        "HyperPod restarts a `PyTorchJob` with its annotations only with `restartPolicy: OnFailure`, in a namespace `kubeflow`, `hyperpod*` or `aws-hyperpod*`, and with training operator 1.7.0, 1.8.0 or 1.8.1. A job with `Worker`s only is one of them.",
        (f"{_KUBERNETES}/kinds/pytorch_job.py",),
        "A run whose node was replaced is not restarted, or auto-resume is withheld where it would work.",
        "by hand",
        "Submit a run of two nodes in such a namespace, then label a node `sagemaker.amazonaws.com/node-health-status=UnschedulablePendingReplacement`. Try again with `restartPolicy: ExitCode`.",
    ),
    Fact(
        "job-auto-restart-deletes-pods",
        "HyperPod's resiliency agent deletes the pods of a node that it replaces, and leaves the restart to the job's own kind.",
        (f"{_KUBERNETES}/kinds/kind.py", f"{_KUBERNETES}/observe/verdicts.py"),
        "A run restarts twice for one fault, or not at all.",
        "by hand",
        "As above, with `kubectl get pods -w` and `kubectl get events -w` beside it. Look at who deletes and who creates.",
    ),
    Fact(
        "hyperpod-training-operator",
        "The operator of `HyperPodPyTorchJob` takes what is rendered, and recovers pods within `jobMaxRetryCount`.",
        (f"{_KUBERNETES}/kinds/hyperpod_job.py",),
        "Runs of this kind are refused or never recover. `PyTorchJob` is the default.",
        "by hand",
        '`hpj submit --spec kind.json ...` with `{"kubernetes": {"kind": "HyperPodPyTorchJob"}}` on a cluster with the add-on. Kill a rank, and look at `hpj show`.',
    ),
)


# --------------------------------------------------------------------------------------------------
# Facts about SageMaker Studio.

_HOLDERS = "hyperpod_jlab/admin/fsx/aws.py"
_SCRIPTS = "hyperpod_jlab/admin/lifecycle"

STUDIO_FACTS = (
    Fact(
        "update-domain-without-pass-role",
        "`UpdateDomain` of `DefaultSpaceSettings` with the domain's own `ExecutionRole` needs no `iam:PassRole`.",
        (_HOLDERS, "cloudformation/roles.yaml", "cloudformation/wire-domain.yaml"),
        "`hpj admin apply` and the stack's functions fail at the defaults of shared spaces. Grant `iam:PassRole` on the domain's role to whoever applies.",
        "write",
        "Makes the update in the temporary domain with a session of `--as-role` whose policy lacks `iam:PassRole`: once where the space "
        "defaults have no role yet, once with the role that is there. Without `--write` it only says whether you have `iam:PassRole` on "
        "the role of `--domain`.",
    ),
    Fact(
        "space-defaults-need-role",
        "`UpdateDomain` refuses `DefaultSpaceSettings` without an `ExecutionRole`.",
        (_HOLDERS,),
        "Nothing breaks. The role could be left out of the update.",
        "write",
        "Makes the update without a role.",
    ),
    Fact(
        "update-keeps-other-settings",
        "An update of a domain's settings leaves the members alone that it does not name.",
        (_HOLDERS, f"{_SCRIPTS}/service.py"),
        "`hpj admin apply` erases other settings of the domain. Do not use it.",
        "write",
        "Updates `CodeEditorAppSettings`, and looks whether the role and JupyterLab's script are still there.",
    ),
    Fact(
        "file-system-list-is-replaced",
        "An update replaces a list of file systems as a whole, and an empty list clears it.",
        (_HOLDERS, "hyperpod_jlab/admin/fsx/models.py"),
        "`hpj admin destroy` and a change of mode leave the file system mounted.",
        "write",
        "With `--file-system`: gives the temporary profile the file system, then an empty list.",
    ),
    Fact(
        "none-takes-script-out",
        "The value `None` takes a lifecycle configuration out of settings.",
        (f"{_SCRIPTS}/models.py",),
        "`hpj admin destroy` leaves scripts in the settings.",
        "write",
        "Sets `BuiltInLifecycleConfigArn` of the temporary profile, then `None`.",
    ),
    Fact(
        "script-in-use-stays",
        "A lifecycle configuration that settings name cannot be deleted.",
        (f"{_SCRIPTS}/service.py",),
        "A script that another domain still uses is deleted, and its spaces do not start.",
        "write",
        "Tries to delete the temporary one while the temporary domain names it.",
    ),
    Fact(
        "rights-before-existence",
        "AWS looks at rights before it looks whether a user profile exists.",
        ("hyperpod_jlab/admin/fsx/service.py",),
        "JupyterLab offers the Admin page to people who cannot use it. AWS still refuses what they do there.",
        "write",
        "Updates a profile that does not exist, with and without the right to (the latter with `--as-role`).",
    ),
    Fact(
        "create-profile-event",
        "CloudTrail's record of `CreateUserProfile` has `requestParameters.domainId` and `.userProfileName`.",
        ("hyperpod_jlab/admin/lambdas/new_profile.py", "cloudformation/wire-domain.yaml"),
        "A new profile gets the file system only when the schedule next runs (an hour at most).",
        "read",
        "Looks the last such events up in CloudTrail. `--write` makes one: run the command again 15 minutes later.",
    ),
    Fact(
        "create-space-event",
        "CloudTrail's record of `CreateSpace` has `requestParameters.domainId` and `.spaceName`.",
        ("hyperpod_jlab/admin/lambdas/new_profile.py", "cloudformation/wire-domain.yaml"),
        "A new space gets the file system only when the schedule next runs, and its user has to restart it.",
        "read",
        "Looks the last such events up in CloudTrail. `--write` makes one: run the command again 15 minutes later.",
    ),
    Fact(
        "event-of-single-sign-on",
        "EventBridge also tells of profiles that single sign-on makes.",
        ("cloudformation/wire-domain.yaml",),
        "Such a profile gets the file system only when the schedule next runs.",
        "by hand",
        "In a domain with single sign-on, let a new person open Studio. Then: `aws cloudtrail lookup-events --lookup-attributes AttributeKey=EventName,AttributeValue=CreateUserProfile`. Look for the profile's name.",
    ),
    Fact(
        "stack-update-keeps-lists",
        "An update of a domain's own stack leaves the lists of file systems alone.",
        ("cloudformation/new-domain.yaml", "hyperpod_jlab/admin/lambdas/reconcile.py"),
        "After such an update the file system is missing until the schedule next runs.",
        "by hand",
        "Change a tag in new-domain.yaml's stack, update it, then run `hpj admin status`.",
    ),
    Fact(
        "profile-inherits-file-systems",
        "A user profile without a list of its own mounts what the domain's defaults name.",
        ("hyperpod_jlab/admin/fsx/planning.py", "hyperpod_jlab/admin/fsx/models.py"),
        "In mode `shared`, new profiles have no file system until the event or the schedule has wired them.",
        "by hand",
        "Apply mode `shared`, make a profile, take its list away (`aws sagemaker update-user-profile ... CustomFileSystemConfigs=[]`), start JupyterLab. Look into `/mnt/custom-file-systems/fsx_lustre`.",
    ),
    Fact(
        "update-while-apps-run",
        "File systems in the settings of a domain or profile can be changed while applications run, which get them at their next start.",
        ("hyperpod_jlab/admin/fsx/planning.py", "hyperpod_jlab/admin/fsx/statements.py"),
        "`hpj admin apply` fails for people who work, with AWS' reason. It goes through once their spaces are stopped.",
        "by hand",
        "Start a space, run `hpj admin apply`, then restart the space. Look into `/mnt/custom-file-systems`.",
    ),
    Fact(
        "interfaces-can-be-tagged",
        "Network interfaces of FSx can be tagged and given a security group.",
        ("hyperpod_jlab/admin/fsx/apply.py",),
        "`hpj admin apply` fails at the step of the network interface, before anything is mounted.",
        "by hand",
        "Run `hpj admin apply` in a test domain. Look at the steps whose names begin with `network interface`.",
    ),
    Fact(
        "right-on-each-group",
        "`ec2:ModifyNetworkInterfaceAttribute` asks for the right on the interface and on each of its security groups.",
        ("hyperpod_jlab/aws/permissions.py", "cloudformation/wire-domain.yaml"),
        "Nothing breaks: both are allowed. The policy could be narrower.",
        "by hand",
        "Allow the action on the interface and the new group only, and run `hpj admin apply`.",
    ),
    Fact(
        "built-in-script-runs-first",
        "`BuiltInLifecycleConfigArn` is looked up at each start, runs before other scripts, and may take 5 minutes like them.",
        (f"{_SCRIPTS}/models.py", "lifecycle-configs/begin/start.sh"),
        "Spaces start without the extension, or with an old script.",
        "by hand",
        "Attach a built-in script and one of your own that write `date` to files. Start the space, change the built-in one, start again. Compare the files.",
    ),
    Fact(
        "work-outlives-script",
        "A process that a lifecycle configuration starts may outlive the script, whether Studio starts the server before or after it.",
        ("lifecycle-configs/begin/start.sh", "lifecycle-configs/jupyterlab/ready.sh"),
        "The set-up is cut off. JupyterLab's panel and `hpj doctor` say that it stopped.",
        "by hand",
        "Start a space with the script. Look whether `~/.local/state/hyperpod-jlab/lifecycle.log` ends with the doctor's result.",
    ),
    Fact(
        "profile-number-on-lustre",
        "A space's files on the file system belong to the profile's own user number.",
        ("hyperpod_jlab/clusters/identity.py", "hyperpod_jlab/admin/fsx/folders.py"),
        "People are refused in their own folders, or read those of others.",
        "by hand",
        "In a space: `touch` a file in the partition. On a cluster node: `ls -n` it, and compare with the profile's `CustomPosixUserConfig` (200001 without one).",
    ),
    Fact(
        "sandboxed-pages",
        "Studio's gateway passes on the headers of a sandboxed page and its WebSockets.",
        ("hyperpod_jlab/server/port_proxy.py", "hyperpod_jlab/server/port_proxy.py"),
        "TensorBoard and other ports of a run stay blank in Studio. `hpj forward` still works.",
        "by hand",
        "In Studio open a port of a run (TensorBoard). Look into the browser's console for refused requests.",
    ),
)


# --------------------------------------------------------------------------------------------------
# Checks of facts that change nothing: they describe, list, look up and simulate.

Check = Callable[[CheckContext], Awaitable[FactFinding]]

_NEEDS_ROLE = "needs --as-role: a role that you can assume"
_NODE_STREAM = re.compile(r"[^/]+/[^/]+/i-[0-9a-f]{8,17}")
_EVENT_MINUTES = 15
"""Minutes of GPU metrics that are looked at."""


async def check_pass_role(ground: CheckContext) -> FactFinding:
    """Whether the caller may pass the domain's role on; the fact itself is checked with ``--write`` only."""
    if ground.domain is None:
        return unknown(
            "needs --write and --as-role; with --domain it says whether you have iam:PassRole"
        )
    response = await ground.aws.call("sagemaker", "DescribeDomain", DomainId=ground.domain)
    role = (response.get("DefaultUserSettings") or {}).get("ExecutionRole")
    identity = await ground.aws.call("sts", "GetCallerIdentity")
    source = await _principal(ground.aws, str(identity["Arn"]))
    simulation = await ground.aws.call(
        "iam",
        "SimulatePrincipalPolicy",
        PolicySourceArn=source,
        ActionNames=["iam:PassRole"],
        ResourceArns=[role],
    )
    allowed = all(result["EvalDecision"] == "allowed" for result in simulation["EvaluationResults"])
    message = (
        "you have iam:PassRole on the domain's role, so 'hpj admin apply' works for you either way; the stack's functions do not have it"
        if allowed
        else "you do not have iam:PassRole on the domain's role, so this fact decides whether 'hpj admin apply' works for you"
    )
    return unknown(f"needs --write and --as-role; {message}")


async def _principal(aws: Aws, arn: str) -> str:
    """The user or role of a caller, as IAM simulates it: a session's ARN does not say the role's path."""
    if ":assumed-role/" not in arn:
        return arn
    response = await aws.call("iam", "GetRole", RoleName=arn.split("/")[1])
    return str(response["Role"]["Arn"])


def event_check(name: str, members: Sequence[str]) -> Check:
    """A check that CloudTrail's records of a call have these members of the request."""

    async def check(ground: CheckContext) -> FactFinding:
        filters = [{"AttributeKey": "EventName", "AttributeValue": name}]
        response = await ground.aws.call(
            "cloudtrail", "LookupEvents", LookupAttributes=filters, MaxResults=20
        )
        records = [json.loads(event["CloudTrailEvent"]) for event in response.get("Events") or ()]
        matching_nodes = [
            event.get("requestParameters") or {}
            for event in records
            if not event.get("errorCode") and event.get("eventSource") == "sagemaker.amazonaws.com"
        ]
        if not matching_nodes:
            return unknown(f"CloudTrail has no {name} of the last 90 days in this region")
        for event in matching_nodes:
            missing = [member for member in members if not isinstance(event.get(member), str)]
            if missing:
                return wrong(
                    f"a record has no requestParameters.{missing[0]}; it has {', '.join(sorted(event)) or 'nothing'}"
                )
        return holds(
            f"{len(matching_nodes)} {'record has' if len(matching_nodes) == 1 else 'records have'} them"
        )

    return check


async def check_node_targets(ground: CheckContext) -> FactFinding:
    """Whether Systems Manager has heard of nodes by the name that we give them."""
    asked_count = connected = 0
    for cluster in await ground.clusters():
        for node in await ground.running_nodes(cluster):
            target = node_target(cluster.arn, node)
            response = await ground.aws.call("ssm", "GetConnectionStatus", Target=target)
            asked_count += 1
            connected += str(response["Status"]).lower() == "connected"
    if not asked_count:
        return unknown("no cluster here has a running node")
    if connected:
        return holds(f"{connected} of {asked_count} nodes are connected under that name")
    return wrong(
        f"none of {asked_count} nodes is connected under that name; to confirm, try: hpj terminal NODE --open"
    )


async def check_instance_types(ground: CheckContext) -> FactFinding:
    """Whether EC2 knows the types of the clusters' groups."""
    types = {
        group.instance_type.removeprefix("ml.")
        for cluster in await ground.clusters()
        for group in cluster.groups or ()
        if group.instance_type
    }
    if not types:
        return unknown("no cluster here has an instance group")
    filters = [{"Name": "instance-type", "Values": sorted(types)}]
    response = await ground.aws.call("ec2", "DescribeInstanceTypes", Filters=filters)
    missing = types - {item["InstanceType"] for item in response.get("InstanceTypes") or ()}
    if missing:
        return wrong(f"EC2 does not know {', '.join(sorted(missing))}")
    return holds(f"EC2 knows {', '.join(sorted(types))}")


async def check_log_names(ground: CheckContext) -> FactFinding:
    """Whether nodes write to the logs that we look for."""
    checked_groups = []
    for cluster in await ground.clusters():
        if not await ground.running_nodes(cluster):
            continue
        checked_groups.append(cluster.name)
        try:
            pages = list_logs(ground.aws, log_group(cluster.arn, cluster.name))
            names = [log.stream async for page in pages for log in page]
        except NotFoundError:
            continue
        matching_names = [name for name in names if _NODE_STREAM.fullmatch(name)]
        if matching_names:
            return holds(
                f"{len(matching_names)} of {len(names)} streams of one cluster have such names"
            )
        if names:
            return wrong(f"no stream of a cluster has such a name; an example is '{names[0][:80]}'")
    if not checked_groups:
        return unknown("no cluster here has a running node")
    return wrong(f"none of {len(checked_groups)} clusters with nodes has the log group")


async def check_slurm_metrics(ground: CheckContext) -> FactFinding:
    """Whether CloudWatch has metrics of clusters with Slurm."""
    clusters = [item for item in await ground.clusters() if item.on_slurm and _size(item)]
    if not clusters:
        return unknown("no cluster here is a Slurm cluster with nodes")
    expected = {source.name for source in metrics.SLURM_METRICS.values()}
    for cluster in clusters:
        listed_metrics = await _metrics(
            ground.aws, metrics.SLURM, "ClusterId", cluster.arn.rpartition("/")[2]
        )
        matching = expected & {item["MetricName"] for item in listed_metrics}
        if matching:
            return holds(f"CloudWatch has {len(matching)} of {len(expected)} metrics of a cluster")
        if listed_metrics:
            return wrong(
                f"the metrics of a cluster have other names: {_some_names(listed_metrics)}"
            )
    return wrong(f"CloudWatch has no metrics of {len(clusters)} Slurm clusters in {metrics.SLURM}")


async def check_eks_metrics(ground: CheckContext) -> FactFinding:
    """Whether Container Insights names nodes as we look for them."""
    for cluster in await ground.clusters():
        if cluster.eks_arn is None or not _size(cluster):
            continue
        eks = cluster.eks_arn.rpartition("/")[2]
        nodes = await metrics.nodes_with_metrics(ground.aws, eks)
        if not nodes:
            listed_metrics = await _metrics(ground.aws, metrics.INSIGHTS, "ClusterName", eks)
            if listed_metrics:
                return wrong(
                    f"a cluster's metrics have no such node names; examples: {_some_names(listed_metrics)}"
                )
            continue
        node_metrics = await metrics.metrics_of_node(ground.aws, eks, next(iter(nodes)))
        health = [name for name in node_metrics if name.startswith("hyperpod_node_health_status_")]
        if not health:
            return wrong("a node has metrics, but none of hyperpod_node_health_status_*")
        return holds(f"{len(nodes)} nodes of a cluster have such names")
    return unknown("no EKS cluster here has Container Insights")


def _size(cluster: HyperpodCluster) -> int:
    return sum(group.current for group in cluster.groups or ())


async def _metrics(aws: Aws, namespace: str, name: str, value: str) -> list[Mapping[str, Any]]:
    """Metrics of one thing: the first page of them."""
    dimensions = [{"Name": name, "Value": value}]
    response = await aws.call(
        "cloudwatch", "ListMetrics", Namespace=namespace, Dimensions=dimensions
    )
    return list(response.get("Metrics") or ())


def _some_names(listed_metrics: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(sorted({str(metric["MetricName"]) for metric in listed_metrics})[:5])


async def check_gpu_labels(ground: CheckContext) -> FactFinding:
    """Whether the add-on's metrics of GPUs have the labels by which we find a node."""
    now = time.time()
    for cluster in await ground.clusters():
        if cluster.eks_arn is None:
            continue
        eks = cluster.eks_arn.rpartition("/")[2]
        workspace = await workspace_of_addon(ground.aws, eks)
        if workspace is None:
            continue
        window = TimeRange(now - _EVENT_MINUTES * 60, now, 60)
        series = await query_range(ground.aws, workspace, "DCGM_FI_DEV_GPU_UTIL", window)
        if not series:
            continue
        labelled = [
            item
            for item in series
            if item.labels.get("Hostname", "").startswith("hyperpod-") and "gpu" in item.labels
        ]
        if labelled:
            return holds(f"{len(labelled)} of {len(series)} GPUs have these labels")
        return wrong(f"the labels are {', '.join(sorted(series[0].labels))}")
    return unknown("no EKS cluster here has the add-on with GPU metrics")


async def check_addon_permission(ground: CheckContext) -> FactFinding:
    """On which resource the right to describe an add-on is asked for."""
    eks = next((cluster.eks_arn for cluster in await ground.clusters() if cluster.eks_arn), None)
    if eks is None:
        return unknown("no cluster here is on EKS")
    addon = f"{eks.replace(':cluster/', ':addon/')}/*"
    allowed = {}
    for resource_name, resource in (("add-on", addon), ("cluster", eks)):
        aws = await ground.limited_session(["eks:DescribeAddon"], resource)
        if aws is None:
            return unknown(_NEEDS_ROLE)
        allowed[resource_name] = await _may_describe(aws, eks.rpartition("/")[2])
    if allowed["add-on"]:
        return holds("the permission on the add-on is enough")
    if allowed["cluster"]:
        return wrong("it needs the permission on the cluster")
    return unknown("the role of --as-role has no permission to describe add-ons")


async def _may_describe(aws: Aws, eks: str) -> bool:
    try:
        await aws.call("eks", "DescribeAddon", clusterName=eks, addonName=ADDON)
    except DeniedError:
        return False
    except NotFoundError:
        return True  # it was allowed, and there is no add-on
    return True


READ_CHECKS: Mapping[str, Check] = {
    "create-profile-event": event_check("CreateUserProfile", ("domainId", "userProfileName")),
    "create-space-event": event_check("CreateSpace", ("domainId", "spaceName")),
    "node-target": check_node_targets,
    "ec2-knows-types": check_instance_types,
    "node-log-names": check_log_names,
    "slurm-metrics": check_slurm_metrics,
    "eks-node-metrics": check_eks_metrics,
    "observability-labels": check_gpu_labels,
    "addon-right": check_addon_permission,
}
"""The checks of all facts that are checked so, by the facts' names."""
