"""Slurm's reasons in words: every code of every supported version has a sentence of its own."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from hyperpod_jlab.engines.slurm.reasons import reason_code, reason_message
from tests.slurm.cluster import running

FIRST = """
Priority Dependency Resources PartitionNodeLimit PartitionTimeLimit PartitionDown
PartitionInactive JobHeldAdmin BeginTime Licenses AssociationJobLimit AssociationResourceLimit
AssociationTimeLimit Reservation ReqNodeNotAvail JobHeldUser FrontEndDown SchedDefer NodeDown
BadConstraints SystemFailure JobLaunchFailure NonZeroExitCode TimeLimit InactiveLimit
InvalidAccount InvalidQOS QOSUsageThreshold QOSJobLimit QOSResourceLimit QOSTimeLimit
BlockMaxError BlockFreeAction Cleaning Prolog QOSNotAllowed AccountNotAllowed
DependencyNeverSatisfied QOSGrpCpuLimit QOSGrpCPUMinutesLimit QOSGrpCPURunMinutesLimit
QOSGrpJobsLimit QOSGrpMemLimit QOSGrpNodeLimit QOSGrpSubmitJobsLimit QOSGrpWallLimit
QOSMaxCpuPerJobLimit QOSMaxCpuMinutesPerJobLimit QOSMaxNodePerJobLimit
QOSMaxWallDurationPerJobLimit QOSMaxCpuPerUserLimit QOSMaxJobsPerUserLimit
QOSMaxNodePerUserLimit QOSMaxSubmitJobPerUserLimit QOSMinCpuNotSatisfied AssocGrpCpuLimit
AssocGrpCPUMinutesLimit AssocGrpCPURunMinutesLimit AssocGrpJobsLimit AssocGrpMemLimit
AssocGrpNodeLimit AssocGrpSubmitJobsLimit AssocGrpWallLimit AssocMaxJobsLimit
AssocMaxCpuPerJobLimit AssocMaxCpuMinutesPerJobLimit AssocMaxNodePerJobLimit
AssocMaxWallDurationPerJobLimit AssocMaxSubmitJobLimit JobHoldMaxRequeue JobArrayTaskLimit
BurstBufferResources BurstBufferStageIn BurstBufferOperation PowerNotAvail PowerReserved
AssocGrpUnknown AssocGrpUnknownMinutes AssocGrpUnknownRunMinutes AssocMaxUnknownPerJob
AssocMaxUnknownPerNode AssocMaxUnknownMinutesPerJob AssocMaxCpuPerNode AssocGrpMemMinutes
AssocGrpMemRunMinutes AssocMaxMemPerJob AssocMaxMemPerNode AssocMaxMemMinutesPerJob
AssocGrpNodeMinutes AssocGrpNodeRunMinutes AssocMaxNodeMinutesPerJob AssocGrpEnergy
AssocGrpEnergyMinutes AssocGrpEnergyRunMinutes AssocMaxEnergyPerJob AssocMaxEnergyPerNode
AssocMaxEnergyMinutesPerJob AssocGrpGRES AssocGrpGRESMinutes AssocGrpGRESRunMinutes
AssocMaxGRESPerJob AssocMaxGRESPerNode AssocMaxGRESMinutesPerJob AssocGrpLicense
AssocGrpLicenseMinutes AssocGrpLicenseRunMinutes AssocMaxLicensePerJob
AssocMaxLicenseMinutesPerJob AssocGrpBB AssocGrpBBMinutes AssocGrpBBRunMinutes AssocMaxBBPerJob
AssocMaxBBPerNode AssocMaxBBMinutesPerJob QOSGrpUnknown QOSGrpUnknownMinutes
QOSGrpUnknownRunMinutes QOSMaxUnknownPerJob QOSMaxUnknownPerNode QOSMaxUnknownPerUser
QOSMaxUnknownMinutesPerJob QOSMinUnknown QOSMaxCpuPerNode QOSGrpMemoryMinutes
QOSGrpMemoryRunMinutes QOSMaxMemoryMinutesPerJob QOSMaxMemoryPerJob QOSMaxMemoryPerNode
QOSMaxMemoryPerUser QOSMinMemory QOSGrpEnergy QOSGrpEnergyMinutes QOSGrpEnergyRunMinutes
QOSMaxEnergyPerJob QOSMaxEnergyPerNode QOSMaxEnergyPerUser QOSMaxEnergyMinutesPerJob
QOSMinEnergy QOSGrpNodeMinutes QOSGrpNodeRunMinutes QOSMaxNodeMinutesPerJob QOSMinNode
QOSGrpGRES QOSGrpGRESMinutes QOSGrpGRESRunMinutes QOSMaxGRESPerJob QOSMaxGRESPerNode
QOSMaxGRESPerUser QOSMaxGRESMinutesPerJob QOSMinGRES QOSGrpLicense QOSGrpLicenseMinutes
QOSGrpLicenseRunMinutes QOSMaxLicensePerJob QOSMaxLicensePerUser QOSMaxLicenseMinutesPerJob
QOSMinLicense QOSGrpBB QOSGrpBBMinutes QOSGrpBBRunMinutes QOSMaxBBPerJob QOSMaxBBPerNode
QOSMaxBBPerUser QOSMinBB DeadLine MaxBBPerAccount MaxCpuPerAccount MaxEnergyPerAccount
MaxGRESPerAccount MaxNodePerAccount MaxLicensePerAccount MaxMemoryPerAccount
MaxUnknownPerAccount MaxJobsPerAccount MaxSubmitJobsPerAccount PartitionConfig AccountingPolicy
FedJobLock OutOfMemory MaxMemPerLimit AssocGrpBilling AssocGrpBillingMinutes
AssocGrpBillingRunMinutes AssocMaxBillingPerJob AssocMaxBillingPerNode
AssocMaxBillingMinutesPerJob QOSGrpBilling QOSGrpBillingMinutes QOSGrpBillingRunMinutes
QOSMaxBillingPerJob QOSMaxBillingPerNode QOSMaxBillingPerUser QOSMaxBillingMinutesPerJob
MaxBillingPerAccount QOSMinBilling ReservationDeleted
"""
"""What job_reason_string of 22.05 gives for the numbers 1 to 198."""

LATER = """
RaisedSignal ReservationInvalid Constraints MaxBBRunMinsPerAccount MaxBillingRunMinsPerAccount
MaxCpuRunMinsPerAccount MaxEnergyRunMinsPerAccount MaxGRESRunMinsPerAccount
MaxNodeRunMinsPerAccount MaxLicenseRunMinsPerAccount MaxMemoryRunMinsPerAccount
MaxUnknownRunMinsPerAccount MaxBBRunMinsPerUser MaxBillingRunMinsPerUser MaxCpuRunMinsPerUser
MaxEnergyRunMinsPerUser MaxGRESRunMinsPerUser MaxNodeRunMinsPerUser MaxLicenseRunMinsPerUser
MaxMemoryRunMinsPerUser MaxUnknownRunMinsPerUser MaxPoweredUpNodes MpiPortsBusy
NvidiaImexChannels
"""
"""What later versions up to 25.11 added."""

CODES = [*FIRST.split(), *LATER.split()]

SAME = {
    "AssocMaxBBMinutesPerJob",  # stands for QOSMaxBBMinutesPerJob as well, in all versions
    "PartitionDown",
}
"""Codes that Slurm gives for two of its numbers."""

FALL_BACK = "not known here"


def test_the_table_holds_all_codes_once():
    assert len(FIRST.split()) == 198 - len(SAME)
    assert len(CODES) == len(set(CODES))


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_sentence(code: str):
    words = reason_message(code)
    assert words is not None
    assert FALL_BACK not in words
    assert len(words) > 20
    assert code not in words
    assert words[0].islower()
    assert not words.endswith(".")
    assert reason_code(code) == code


def test_no_two_codes_share_a_sentence_but_for_spelling():
    seen: dict[str | None, str] = {}
    for code in CODES:
        words = reason_message(code)
        assert words not in seen, f"{code} and {seen[words]} say the same"
        seen[words] = code


@pytest.mark.slurm
def test_the_installed_slurm_gives_no_other_code():
    """Asks Slurm's own library, so that the table above is not just what we believe."""
    libraries = sorted(Path("/usr/lib").glob("*/slurm-wlm/libslurmfull.so"))
    assert libraries, "testbed/install-slurm.sh installs it"
    library = ctypes.CDLL(str(libraries[0]))
    said = library.slurm_job_reason_string
    said.restype = ctypes.c_char_p
    told = [said(number).decode() for number in range(1, 400)]
    names = {name for name in told if not name.isdecimal()}
    assert names == set(FIRST.split())


@pytest.mark.slurm
@pytest.mark.full
def test_the_codes_of_the_later_version_are_in_its_library():
    """24.11's library runs on its own system only, so it is read and not asked. 25.11 added one more (job_state_reason.c)."""
    library = "/usr/lib/*/slurm-wlm/libslurmfull.so"
    with running(version="24.11") as cluster:
        words = f"tr '\\000' '\\n' <$(echo {library}) | grep -axE '[A-Za-z]+'"
        found = cluster.exec("ctl", "sh", "-c", words).split()
    # The compiler keeps a text that another one ends with, as Constraints, only once.
    missing = [code for code in LATER.split() if not any(text.endswith(code) for text in found)]
    assert missing == ["NvidiaImexChannels"]


@pytest.mark.parametrize(
    ("text", "code", "part"),
    [
        ("ReqNodeNotAvail, UnavailableNodes:node[1-2]", "ReqNodeNotAvail", "node[1-2]"),
        ("ReqNodeNotAvail,_UnavailableNodes:node1", "ReqNodeNotAvail", "node1"),
        ("ReqNodeNotAvail, Reserved for maintenance", "ReqNodeNotAvail", "maintenance"),
        ("ReqNodeNotAvail, May be reserved for other job", "ReqNodeNotAvail", "another job"),
        (
            "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
            "Resources",
            "down, drained",
        ),
        ("launch failed requeued held", "JobHeldUser", "could not start"),
        ("job requeued in held state", "JobHeldUser", "release it"),
        ("job requeued in special exit state", "JobHeldUser", "release it"),
        (
            "Job's account not known, so it can't use this partition (batch allows research)",
            "AccountNotAllowed",
            "(batch allows research)",
        ),
        (
            "Job's account not permitted to use this partition (batch allows a not b)",
            "AccountNotAllowed",
            "(batch allows a not b)",
        ),
        (
            "Job's QOS not permitted to use this partition (batch denies a including a)",
            "QOSNotAllowed",
            "use another QoS",
        ),
        ("Reservation upkeep was deleted", "ReservationDeleted", "reservation upkeep was"),
        ("Job is at or exceeds QOS x's group wall limit of 3 with 4", "TimeLimit", "used up"),
        ("Burst buffer stage-in timeout", "JobHeldAdmin", "timed out"),
        ("burst_buffer/lua: setup: no room", "BurstBufferOperation", "setup: no room"),
        ("Prolog/Epilog failure on nodes node1", "JobLaunchFailure", "prolog failed"),
        ("Licenses, matlab", "Licenses", "(matlab)"),
    ],
)
def test_what_the_controller_adds(text: str, code: str, part: str):
    words = reason_message(text)
    assert words is not None
    assert part in words
    assert FALL_BACK not in words
    assert reason_code(text) == code


def test_an_unknown_reason_is_shown_as_it_is():
    assert reason_message("MoonPhase") == ("Slurm reports: MoonPhase (an unknown reason)")
    assert reason_code("MoonPhase") == "MoonPhase"


@pytest.mark.parametrize("text", ["None", "", "(null)"])
def test_no_reason_is_no_sentence(text: str):
    assert reason_message(text) is None


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("AssocGrpGRES", "the running jobs of its account"),
        ("QOSGrpGRESMinutes", "its QoS has used up its minutes of GPUs"),
        ("QOSMaxGRESPerUser", "the limit of its QoS for a user"),
        ("MaxGRESRunMinsPerAccount", "the limit of its QoS for an account"),
        ("AssocMaxCpuMinutesPerJobLimit", "minutes of CPUs, amount times time limit"),
        ("QOSMaxNodePerJobLimit", "more than its QoS allows a job (nodes)"),
        ("QOSMinCpuNotSatisfied", "request more"),
        ("QOSMaxWallDurationPerJobLimit", "time limit"),
        ("AssocMaxSubmitJobLimit", "run or wait"),
        ("MaxJobsPerAccount", "your account's jobs"),
    ],
)
def test_the_parts_of_a_limit(code: str, part: str):
    assert part in str(reason_message(code))
