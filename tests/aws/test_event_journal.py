"""Events that AWS has dropped: the journal, on real files, with several processes, and through ``hpj events``."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import textwrap
import time
from datetime import UTC, datetime, timedelta

import pytest

from hyperpod_jlab.core.errors import StorageError
from hyperpod_jlab.core.events import ClusterEvent
from hyperpod_jlab.features.events import service as event_journal
from hyperpod_jlab.features.events.service import EventJournal, JournalSummary, journal_folder
from testbed.aws.events import event_id
from testbed.aws.example import example_account
from testbed.aws.state import Event
from tests.aws.conftest import REGION

ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abc123def456"
WORDS = ("events", "--cluster", "research-eks")


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def eks(endpoint):
    """The cluster with continuous provisioning, with as many events as AWS keeps, and a minute between them."""
    endpoint.account = example_account(REGION)
    cluster = endpoint.account.clusters[REGION][1]
    cluster.events = []
    happen(cluster, 500)
    return cluster


def happen(cluster, count):
    """Let so many things more happen."""
    begin = datetime.now(UTC).replace(microsecond=0) - timedelta(days=2)
    have = len(cluster.events)
    cluster.events += [
        Event(begin + timedelta(minutes=number), f"Event {number}.")
        for number in range(have, have + count)
    ]


def an_event(number, ago=0.0, **more):
    return ClusterEvent(f"e-{number}", time.time() - ago, "info", "cluster", **more)


def test_what_aws_dropped_is_there_still_and_marked(eks, hpj):
    first = hpj(*WORDS, "--json").ok().json["events"]
    assert [one["journal"] for one in first] == [False] * 500
    happen(eks, 120)
    found = hpj(*WORDS, "--json").ok().json["events"]
    assert [one["description"] for one in found] == [f"Event {n}." for n in range(619, -1, -1)]
    assert [one["journal"] for one in found] == [False] * 500 + [True] * 120
    assert found[500:] == [{**one, "journal": True} for one in first[380:]]
    lines = hpj(*WORDS).ok().out.splitlines()
    assert lines[-1].endswith("Event 0. (from the journal)")
    assert lines[500].endswith("Event 120.")


def test_filters_hold_for_the_journal_too(eks, hpj):
    eks.events[3].level, eks.events[4].group = "Error", "accelerated"
    hpj(*WORDS).ok()
    happen(eks, 10)
    worse = hpj(*WORDS, "--level", "error", "--json").ok().json["events"]
    assert [(one["description"], one["journal"]) for one in worse] == [("Event 3.", True)]
    grouped = hpj(*WORDS, "--group", "accelerated", "--json").ok().json["events"]
    assert [one["description"] for one in grouped] == ["Event 4."]
    late = hpj(*WORDS, "--since", "1h", "--json").ok().json["events"]
    assert late == []


def test_the_details_that_were_seen_stay(eks, hpj):
    eks.events[0].metadata = {"Instance": {"FailureMessage": "No capacity"}}
    name = event_id(eks, eks.events[0])
    other = event_id(eks, eks.events[1])
    assert hpj(*WORDS, "--event", name, "--json").ok().json["reason"] == "No capacity"
    hpj(*WORDS).ok()  # the list, which has no details, takes none away
    happen(eks, 5)
    kept = hpj(*WORDS, "--event", name, "--json").ok().json
    assert (kept["reason"], kept["journal"]) == ("No capacity", True)
    assert hpj(*WORDS, "--event", other, "--json").ok().json["metadata"] == {}
    assert "AWS has dropped it" in hpj(*WORDS, "--event", name).ok().out


def test_deleting_the_journal_loses_what_only_it_had(eks, hpj, home):
    hpj(*WORDS).ok()
    happen(eks, 5)
    folder = journal_folder()
    assert folder.is_relative_to(home.environment["XDG_STATE_HOME"])
    (path,) = folder.iterdir()
    assert folder.stat().st_mode & 0o077 == 0
    path.unlink()
    assert len(hpj(*WORDS, "--json").ok().json["events"]) == 500


def test_a_cluster_made_anew_has_another_journal(state):
    EventJournal(ARN).add([an_event(1)])
    assert EventJournal(ARN + "0").read() == JournalSummary()
    assert [one.event_id for one in EventJournal(ARN).read().events] == ["e-1"]


def test_it_is_bounded_in_number_and_age(state, monkeypatch):
    monkeypatch.setattr(event_journal, "MAX_EVENTS_IN_JOURNAL", 5)
    journal = EventJournal(ARN)
    journal.add(an_event(number, ago=number) for number in range(9))
    assert [one.event_id for one in journal.read().events] == [f"e-{n}" for n in range(5)]
    journal.add([an_event(77, ago=400 * 86400)])
    assert "e-77" not in {one.event_id for one in journal.read().events}
    large = an_event(-1, ago=-9, metadata={"text": "x" * 100_000})
    journal.add([large])
    assert journal.read().events[0].metadata == {}


def test_journals_of_clusters_that_are_gone_go(state):
    old, new = EventJournal(ARN + "old"), EventJournal(ARN)
    old.add([an_event(1)])
    long_ago = time.time() - 400 * 86400
    os.utime(old.path, (long_ago, long_ago))
    new.add([an_event(2)])
    assert not old.path.exists()
    assert new.path.exists()


def test_a_broken_journal_is_begun_anew(state):
    journal = EventJournal(ARN)
    journal.add([an_event(1)])
    journal.path.write_bytes(b"no database at all" * 100)
    journal.add([an_event(2)])
    assert [one.event_id for one in journal.read().events] == ["e-2"]
    with sqlite3.connect(journal.path) as db:
        db.execute("UPDATE events SET event = 'half of a JS'")
    assert journal.read().events == ()


def test_several_processes_write_and_nothing_is_lost(state):
    script = textwrap.dedent(f"""
        import sys, time
        from hyperpod_jlab.core.events import ClusterEvent
        from hyperpod_jlab.features.events.service import EventJournal
        who = sys.argv[1]
        for number in range(40):
            EventJournal("{ARN}").add([ClusterEvent(f"{{who}}-{{number}}", time.time(), "info", "cluster")])
    """)
    processes = [subprocess.Popen([sys.executable, "-c", script, str(who)]) for who in range(4)]
    assert [process.wait(60) for process in processes] == [0] * 4
    found = {one.event_id for one in EventJournal(ARN).read().events}
    assert found == {f"{who}-{number}" for who in range(4) for number in range(40)}


def test_where_it_cannot_be_written_the_events_are_shown_all_the_same(eks, hpj, home):
    folder = journal_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("no folder")
    done = hpj(*WORDS, "--json").ok().json
    assert len(done["events"]) == 500
    (note,) = [note for note in done["notes"] if "journal" in note]
    assert str(folder) in note
    with pytest.raises(StorageError, match="journal of events"):
        EventJournal(ARN).add([])
    name = event_id(eks, eks.events[0])
    assert hpj(*WORDS, "--event", name, "--json").ok().json["event_id"] == name


def test_what_others_add_meanwhile_is_not_taken_for_dropped(state):
    journal = EventJournal(ARN)
    begun = time.time()
    journal.add([an_event(1)])
    assert journal.read(before=begun).events == ()
