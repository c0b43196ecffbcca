"""Facts about HyperPod clusters and their data in Systems Manager, CloudWatch, EC2 and FSx."""

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
        "A session with the document `AWS-StartInteractiveCommand` on a controller runs its command as root, and its data channel accepts the input that the function sends.",
        ("hyperpod_jlab/aws/session_manager.py", "hyperpod_jlab/admin/fsx/folders.py"),
        "The stack cannot create folders for new profiles on a Slurm cluster. Set `Folders=timer`, so that a timer on the controller creates them.",
        "by hand",
        "With the stack and `Folders=cluster`, create a user profile. Check the function's log and the folder.",
    ),
    Fact(
        "session-names",
        "The ARN of a session that an assumed role starts begins with `session/${aws:userid}-`.",
        ("hyperpod_jlab/aws/permissions.py", "cloudformation/roles.yaml"),
        "Users cannot end or resume their sessions.",
        "by hand",
        "Open a terminal with a role that has only `hpj admin policy terminal`. End it with `aws ssm terminate-session --session-id ID`.",
    ),
    Fact(
        "run-as-of-sessions",
        "Without Run As, a session on a node runs as `root`, or as a user that can become `root`.",
        ("hyperpod_jlab/features/doctor/aws.py",),
        "`hpj doctor` warns about access that users do not have.",
        "by hand",
        "Turn Run As off in Session Manager's preferences, open `hpj terminal NODE`, then: `id; sudo -n id`.",
    ),
    Fact(
        "terminal-rights",
        "The policy `terminal` contains all permissions that Session Manager checks.",
        ("hyperpod_jlab/aws/permissions.py", "cloudformation/roles.yaml"),
        "`hpj terminal` fails and names the missing action.",
        "by hand",
        "Attach only the policy that `hpj admin policy terminal` prints to a role. Open a terminal with that role.",
    ),
    Fact(
        "addresses-per-instance",
        "An instance uses as many addresses of its subnet as AWS's guide says (a P5: 32 with Slurm, 81 on EKS). The guide gives the rule for P5; this package applies it to all types.",
        (
            "hyperpod_jlab/core/instance_types.py",
            "hyperpod_jlab/admin/cluster_config/rules.py",
        ),
        "`hpj admin validate` reports that a subnet is large enough, but instances fail to start.",
        "by hand",
        "Run `aws ec2 describe-subnets --subnet-ids ID --query 'Subnets[].AvailableIpAddressCount'` before and after a group grows by one instance.",
    ),
    Fact(
        "ec2-knows-types",
        "EC2 describes each of HyperPod's instance types under its name without `ml.`.",
        (
            "hyperpod_jlab/aws/clusters.py",
            "hyperpod_jlab/admin/cluster_config/facts.py",
        ),
        "The details of that type come from the package's own table, or are unknown.",
        "read",
        "Asks EC2 to describe the types of your clusters.",
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
        "CloudWatch has metrics of Slurm clusters in `/aws/sagemaker/Clusters`, by `ClusterId`.",
        ("hyperpod_jlab/features/metrics/aws.py",),
        "`hpj metrics` shows no metrics of Slurm clusters unless a Prometheus workspace is configured.",
        "read",
        "Lists the metrics of your Slurm clusters.",
    ),
    Fact(
        "script-bucket-name",
        "`CreateCluster` accepts lifecycle scripts in a bucket with any name, if the instances' role may read it.",
        ("hyperpod_jlab/admin/cluster_config/rules.py",),
        "`hpj admin validate` gives a wrong result for a bucket whose name does not begin with `sagemaker-`.",
        "by hand",
        "Create a small cluster with scripts in such a bucket, and a role that may read it.",
    ),
    Fact(
        "cluster-states",
        "A cluster goes through the states in AWS's guide in that order, and rolls back when a group fails.",
        ("hyperpod_jlab/admin/cluster_config/clusters.py", "testbed/aws/lifecycle.py"),
        "`hpj admin create-cluster --wait` shows progress in another order, or ends late.",
        "by hand",
        "Run `hpj admin create-cluster --wait` once with good scripts and once with a script that exits with 1.",
    ),
    Fact(
        "slurm-auto-resume",
        "On HyperPod nodes, `srun` accepts `--auto-resume=1`, and the path `/opt/sagemaker_cluster` exists only there.",
        ("hyperpod_jlab/engines/slurm/render.py",),
        "Runs fail at once with an unknown option, or do not resume after a node replacement.",
        "by hand",
        "On a node: `ls /opt/sagemaker_cluster`. Submit a run of two nodes, and replace one (`hpj node replace`).",
    ),
    Fact(
        "slurm-overlap-step",
        "On a login node of HyperPod, `srun --jobid=ID --overlap` starts a step in a running job of the same user at once.",
        ("hyperpod_jlab/engines/slurm/run_nodes.py",),
        "The shell commands of a run on Slurm fail.",
        "by hand",
        "Submit a run, then on a login node: `srun --jobid=ID --overlap --nodes=1 --ntasks=1 --gres=none hostname`.",
    ),
    Fact(
        "login-nodes-answer-ssh",
        "Login nodes of a cluster with API-driven Slurm configuration accept ssh at their `PrivateDnsHostname`.",
        (
            "hyperpod_jlab/aws/clusters.py",
            "hyperpod_jlab/engines/slurm/ssh.py",
        ),
        "You cannot use the login nodes that AWS lists. Set `login_nodes` in the configuration.",
        "by hand",
        "From a space, run `ssh USER@HOST true` with the host that `hpj nodes NAME` shows for a login node.",
    ),
    Fact(
        "one-task-a-file-system",
        "FSx runs one data repository task per file system at a time, and expects paths relative to the file system's root.",
        ("hyperpod_jlab/features/storage/aws.py",),
        "`hpj storage export` and `import` fail with FSx's reason.",
        "by hand",
        "Run `hpj storage export FOLDER --by aws` twice in a row, then `hpj storage tasks`.",
    ),
    Fact(
        "eks-node-metrics",
        "Container Insights names nodes of HyperPod by `InstanceId` and `NodeName` (`hyperpod-INSTANCE`), with `hyperpod_node_health_status_*`.",
        ("hyperpod_jlab/features/metrics/aws.py",),
        "`hpj metrics --by-node` shows no nodes of EKS clusters.",
        "read",
        "Lists the metrics of your EKS clusters.",
    ),
    Fact(
        "observability-labels",
        "The observability add-on's GPU metrics have the labels `Hostname` (the node's name) and `gpu`.",
        ("hyperpod_jlab/features/metrics/prometheus.py",),
        "`hpj metrics` shows no GPUs of clusters with the add-on.",
        "read",
        "Queries the add-on's workspace for the latest `DCGM_FI_DEV_GPU_UTIL`, and checks the labels.",
    ),
    Fact(
        "addon-right",
        "`eks:DescribeAddon` needs permission on the resource `addon/CLUSTER/*`.",
        ("hyperpod_jlab/aws/permissions.py", "cloudformation/roles.yaml"),
        "Without permission on `cluster/CLUSTER`, the workspace of the add-on is not found.",
        "read",
        "With `--as-role`: calls it in a session with permission on the add-on only, then on the cluster only.",
    ),
    Fact(
        "auto-resume-conditions",
        "HyperPod restarts a `PyTorchJob` with its annotations only with `restartPolicy: OnFailure`, in a namespace `kubeflow`, `hyperpod*` or `aws-hyperpod*`, and with training operator 1.7.0, 1.8.0 or 1.8.1. A job that has only `Worker`s qualifies.",
        (f"{_KUBERNETES}/kinds/pytorch_job.py",),
        "A run does not restart after a node replacement, or runs without auto-resume where HyperPod would support it.",
        "by hand",
        "Submit a run of two nodes in such a namespace, then label a node `sagemaker.amazonaws.com/node-health-status=UnschedulablePendingReplacement`. Try again with `restartPolicy: ExitCode`.",
    ),
    Fact(
        "job-auto-restart-deletes-pods",
        "HyperPod's resiliency agent deletes the pods of a node that it replaces, and the job's operator restarts them.",
        (f"{_KUBERNETES}/kinds/kind.py", f"{_KUBERNETES}/observe/verdicts.py"),
        "A run restarts twice for one fault, or not at all.",
        "by hand",
        "Do the same while `kubectl get pods -w` and `kubectl get events -w` run. Check which component deletes and creates the pods.",
    ),
    Fact(
        "hyperpod-training-operator",
        "The operator of `HyperPodPyTorchJob` accepts the rendered manifest, and recovers pods up to `jobMaxRetryCount` times.",
        (f"{_KUBERNETES}/kinds/hyperpod_job.py",),
        "Runs of this kind fail at submit or never recover. `PyTorchJob` is the default.",
        "by hand",
        'Run `hpj submit --spec kind.json ...` with `{"kubernetes": {"kind": "HyperPodPyTorchJob"}}` on a cluster with the add-on. Kill a rank, then check `hpj show`.',
    ),
    Fact(
        "operator-log-rules",
        "`hyperpodrun` applies the rules of `logMonitoringConfiguration` to the file `stdout.log` beside `TORCHELASTIC_ERROR_FILE`, and the operator restarts the job when one fires. `hyperpodrun` 1.1.3 does so; the operator's part is closed.",
        (f"{_KUBERNETES}/kinds/hyperpod_job.py",),
        "With `--stop-on hang`, a run whose launcher is stuck goes on until its time limit. The launcher's own alarms still work.",
        "by hand",
        "Do the same with `--stop-on hang`, then stop a pod's launcher (`kill -STOP`) for 20 minutes. Check the job's `restartCount`.",
    ),
    Fact(
        "price-list-of-clusters",
        "Products of HyperPod's instances in the AWS Price List have `component` = `Cluster`, `regionCode`, usage types that end in `Cluster:ml.TYPE`, and one price per `Hrs`.",
        ("hyperpod_jlab/aws/price_list.py",),
        "There are no prices of the Price List. Write them into the configuration.",
        "by hand",
        "Run `aws pricing get-products --region us-east-1 --service-code AmazonSageMaker --filters Type=TERM_MATCH,Field=component,Value=Cluster Type=TERM_MATCH,Field=regionCode,Value=us-west-2 --max-results 1`.",
    ),
    Fact(
        "cluster-tags-reach-the-bill",
        "An active cost allocation tag of a HyperPod cluster assigns the costs of its instances to it, with usage types that end in `Cluster:ml.TYPE` and hours as quantity.",
        ("hyperpod_jlab/features/cost/aws.py",),
        "`hpj bill` and budgets find no costs.",
        "by hand",
        "Tag a cluster, activate the tag, and a day later compare `hpj bill` with Cost Explorer's console (each request costs $0.01).",
    ),
    Fact(
        "budget-shows-cost-filters",
        "`DescribeBudget` returns the `CostFilters` that a budget was created with.",
        ("hyperpod_jlab/admin/budget/aws.py",),
        "A changed tag is not noticed: use `hpj admin budget destroy` and `apply`.",
        "by hand",
        "Run `hpj admin budget apply` twice, the second time with another `--tag`. The plan must show `~`.",
    ),
)


# --------------------------------------------------------------------------------------------------
# Facts about SageMaker Studio.

_HOLDERS = "hyperpod_jlab/admin/fsx/aws.py"
_SCRIPTS = "hyperpod_jlab/admin/lifecycle"

STUDIO_FACTS = (
    Fact(
        "update-domain-without-pass-role",
        "`UpdateDomain` needs no `iam:PassRole` when it sets the domain's own `ExecutionRole` in `DefaultSpaceSettings`.",
        (_HOLDERS, "cloudformation/roles.yaml", "cloudformation/wire-domain.yaml"),
        "`hpj admin apply` and the stack's functions fail at the defaults of shared spaces. Grant `iam:PassRole` on the domain's role to the role that runs them.",
        "write",
        "Updates the temporary domain in a session of `--as-role` without `iam:PassRole`: once before the space defaults have a role, once with the existing role. Without `--write`, it only reports whether you have `iam:PassRole` on the role of `--domain`.",
    ),
    Fact(
        "space-defaults-need-role",
        "`UpdateDomain` rejects `DefaultSpaceSettings` without an `ExecutionRole`.",
        (_HOLDERS,),
        "Nothing breaks. The update could omit the role.",
        "write",
        "Updates the domain without a role.",
    ),
    Fact(
        "update-keeps-other-settings",
        "An update of a domain's settings does not change members that it does not name.",
        (_HOLDERS, f"{_SCRIPTS}/service.py"),
        "`hpj admin apply` erases other settings of the domain. Do not use it.",
        "write",
        "Updates `CodeEditorAppSettings`, and checks that the role and JupyterLab's script are still set.",
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
        "The value `None` removes a lifecycle configuration from the settings.",
        (f"{_SCRIPTS}/models.py",),
        "`hpj admin destroy` leaves scripts in the settings.",
        "write",
        "Sets `BuiltInLifecycleConfigArn` of the temporary profile, then `None`.",
    ),
    Fact(
        "script-in-use-stays",
        "AWS refuses to delete a lifecycle configuration that settings use.",
        (f"{_SCRIPTS}/service.py",),
        "`hpj` deletes a script that another domain still uses, and its spaces do not start.",
        "write",
        "Tries to delete the temporary one while the temporary domain uses it.",
    ),
    Fact(
        "rights-before-existence",
        "AWS checks permissions before it checks whether a user profile exists.",
        ("hyperpod_jlab/admin/fsx/service.py",),
        "JupyterLab offers the Admin page to users who cannot use it. AWS still denies their changes.",
        "write",
        "Updates a profile that does not exist, with and without permission (the latter with `--as-role`).",
    ),
    Fact(
        "create-profile-event",
        "CloudTrail's record of `CreateUserProfile` has `requestParameters.domainId` and `.userProfileName`.",
        ("hyperpod_jlab/admin/lambdas/new_profile.py", "cloudformation/wire-domain.yaml"),
        "A new profile gets the file system only when the schedule next runs, within an hour.",
        "read",
        "Looks up the latest such events in CloudTrail. `--write` creates one: run the command again 15 minutes later.",
    ),
    Fact(
        "create-space-event",
        "CloudTrail's record of `CreateSpace` has `requestParameters.domainId` and `.spaceName`.",
        ("hyperpod_jlab/admin/lambdas/new_profile.py", "cloudformation/wire-domain.yaml"),
        "A new space gets the file system only when the schedule next runs, and its user has to restart it.",
        "read",
        "Looks up the latest such events in CloudTrail. `--write` creates one: run the command again 15 minutes later.",
    ),
    Fact(
        "event-of-single-sign-on",
        "EventBridge also reports profiles that single sign-on creates.",
        ("cloudformation/wire-domain.yaml",),
        "Such a profile gets the file system only when the schedule next runs.",
        "by hand",
        "In a domain with single sign-on, let a new user open Studio. Run `aws cloudtrail lookup-events --lookup-attributes AttributeKey=EventName,AttributeValue=CreateUserProfile`, and look for the profile's name.",
    ),
    Fact(
        "stack-update-keeps-lists",
        "An update of a domain's own stack does not change the lists of file systems.",
        ("cloudformation/new-domain.yaml", "hyperpod_jlab/admin/lambdas/reconcile.py"),
        "After such an update, the file system is missing until the schedule next runs.",
        "by hand",
        "Change a tag in new-domain.yaml's stack, update it, then run `hpj admin status`.",
    ),
    Fact(
        "profile-inherits-file-systems",
        "A user profile without its own list mounts the file systems of the domain's defaults.",
        ("hyperpod_jlab/admin/fsx/planning.py", "hyperpod_jlab/admin/fsx/models.py"),
        "In mode `shared`, new profiles have no file system until the event or the schedule sets them up.",
        "by hand",
        "Apply mode `shared`, create a profile, and clear its list (`aws sagemaker update-user-profile ... CustomFileSystemConfigs=[]`). Start JupyterLab, and look into `/mnt/custom-file-systems/fsx_lustre`.",
    ),
    Fact(
        "update-while-apps-run",
        "You can change the file systems of a domain or profile while applications run. Applications get them at their next start.",
        ("hyperpod_jlab/admin/fsx/planning.py", "hyperpod_jlab/admin/fsx/statements.py"),
        "`hpj admin apply` fails for users with running applications, with AWS's reason. It succeeds once their spaces are stopped.",
        "by hand",
        "Start a space, run `hpj admin apply`, then restart the space. Look into `/mnt/custom-file-systems`.",
    ),
    Fact(
        "interfaces-can-be-tagged",
        "You can tag network interfaces of FSx and add a security group to them.",
        ("hyperpod_jlab/admin/fsx/apply.py",),
        "`hpj admin apply` fails at the network interface step, before anything is mounted.",
        "by hand",
        "Run `hpj admin apply` in a test domain. Check the steps whose names begin with `network interface`.",
    ),
    Fact(
        "right-on-each-group",
        "`ec2:ModifyNetworkInterfaceAttribute` needs permission on the interface and on each of its security groups.",
        ("hyperpod_jlab/aws/permissions.py", "cloudformation/wire-domain.yaml"),
        "Nothing breaks: the policy allows both. It could be narrower.",
        "by hand",
        "Allow the action only on the interface and the new group, and run `hpj admin apply`.",
    ),
    Fact(
        "built-in-script-runs-first",
        "Studio reads `BuiltInLifecycleConfigArn` at each start, and runs that script before others, with the same limit of 5 minutes.",
        (f"{_SCRIPTS}/models.py", "lifecycle-configs/begin/start.sh"),
        "Spaces start without the extension, or with an old script.",
        "by hand",
        "Attach a built-in script and one of your own that write `date` to files. Start the space, change the built-in script, and start the space again. Compare the files.",
    ),
    Fact(
        "work-outlives-script",
        "A process that a lifecycle configuration starts can outlive the script, whether Studio starts the server before or after the script.",
        ("lifecycle-configs/begin/start.sh", "lifecycle-configs/jupyterlab/ready.sh"),
        "The setup is cut off. JupyterLab's panel and `hpj doctor` report that it stopped.",
        "by hand",
        "Start a space with the script. Check that `~/.local/state/hyperpod-jlab/lifecycle.log` ends with the doctor's result.",
    ),
    Fact(
        "profile-number-on-lustre",
        "A space's files on the file system belong to the profile's own user id.",
        ("hyperpod_jlab/clusters/identity.py", "hyperpod_jlab/admin/fsx/folders.py"),
        "Users have no access to their own folders, or can read those of others.",
        "by hand",
        "In a space, `touch` a file in the partition. On a cluster node, run `ls -n` on it, and compare with the profile's `CustomPosixUserConfig` (200001 without one).",
    ),
)


# --------------------------------------------------------------------------------------------------
# Checks of facts that change nothing: they describe, list, look up and simulate.

Check = Callable[[CheckContext], Awaitable[FactFinding]]

_NEEDS_ROLE = "needs --as-role: a role that you can assume"
_NODE_STREAM = re.compile(r"[^/]+/[^/]+/i-[0-9a-f]{8,17}")
_EVENT_MINUTES = 15
"""Minutes of GPU metrics to read."""


async def check_pass_role(ground: CheckContext) -> FactFinding:
    """Whether the caller may pass the domain's role; the fact itself is only checked with ``--write``."""
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
    """The caller's user or role for IAM's simulation: a session's ARN lacks the role's path."""
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
    """Whether Systems Manager knows nodes by our target names."""
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
    """Whether nodes write to the expected log streams."""
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
    """Whether CloudWatch has metrics of Slurm clusters."""
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
    """Whether Container Insights uses the expected node names."""
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
    """The first page of metrics with a dimension."""
    dimensions = [{"Name": name, "Value": value}]
    response = await aws.call(
        "cloudwatch", "ListMetrics", Namespace=namespace, Dimensions=dimensions
    )
    return list(response.get("Metrics") or ())


def _some_names(listed_metrics: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(sorted({str(metric["MetricName"]) for metric in listed_metrics})[:5])


async def check_gpu_labels(ground: CheckContext) -> FactFinding:
    """Whether the add-on's GPU metrics have the expected node labels."""
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
    """The resource of the permission to describe an add-on."""
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
        return True  # permission granted, and there is no add-on
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
"""The checks without changes, by the facts' names."""
