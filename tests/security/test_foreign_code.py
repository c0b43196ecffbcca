"""The store of code on a partition of several users: what a user sends is what runs, and what is shown is what was sent."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from pathlib import Path

from tests.security.attacks import plant, program, put, runs_folders, take_common_folders, try_to
from tests.security.conftest import Scene
from tests.security.people import LIMIT
from tests.security.server import serving


def test_a_file_that_another_one_made_is_not_run_in_place_of_ones_own(scene: Scene) -> None:
    """Finding 7."""
    alice, bob = scene.alice, scene.bob
    bob.do(lambda: take_common_folders(scene.partition))
    train = ("print('really alices')\n" + "# what is to be learned\n" * 200).encode()
    notes = _of_one_shelf(program(scene.canaries, "notes").encode(), train)
    (alice.project / "notes.txt").write_bytes(notes)
    alice.hpj("submit", "--wait", "--run-id", "first", "-c", "true").ok()
    (alice.project / "train.py").write_bytes(train)
    stored = {path for path in scene.partition.glob(".hyperpod*/code/*/*") if path.read_bytes() == notes}
    assert stored, "the file that bob gave her was not stored"

    def rename() -> int:
        name = hashlib.sha256(train).hexdigest()
        tries = [lambda path=path: path.rename(path.with_name(name)) for path in stored]
        tries += [lambda path=path: os.link(path, path.with_name(name)) for path in stored]
        return sum(map(try_to, tries))

    renamed = bob.do(rename)
    words = ("submit", "train.py", "--no-project-files", "--follow", "--run-id", "second")
    sent = alice.hpj(*words).clean()
    assert scene.betrayed == []
    assert not renamed
    assert "really alices\n" in sent.ok().out


def _of_one_shelf(text: bytes, like: bytes) -> bytes:
    """A program of the same size whose digest begins like the other's."""
    shelf = hashlib.sha256(like).hexdigest()[:2]
    for number in itertools.count():
        tail = b"#%d" % number
        data = text + tail + b"\n" * (len(like) - len(text) - len(tail))
        if hashlib.sha256(data).hexdigest()[:2] == shelf:
            return data
    raise AssertionError


def point_at(place: Path, secret: Path) -> None:
    """Let everything in a bundle that names a file lead to another one."""
    files = json.loads((place / "files.json").read_text())
    ways = ("../" * 12 + str(secret)[1:], str(secret), f"zz/../../{'../' * 12}{str(secret)[1:]}")
    files["files"] += [
        {"path": f"code/z{number}", "digest": digest, "executable": False} for number, digest in enumerate(ways)
    ]
    files["files"] += [{"path": "../" * 12 + str(secret)[1:], "digest": "0" * 64, "executable": False}]
    put(place / "files.json", json.dumps(files))
    for name in ("logs/attempt-1/node-0.rank-0.log", "local.json", "code/linked.py", "work/linked.py"):
        put(place / name, "")
        (place / name).unlink()
        (place / name).symlink_to(secret)
    put(place / "native.json", json.dumps({"format": 1, "script": "../" * 12 + str(secret)[1:]}))


def test_digests_that_are_none_and_links_show_nothing_of_the_readers(scene: Scene) -> None:
    """Finding 8, its second part."""
    alice, bob = scene.alice, scene.bob
    put(bob.project / "train.py", "print('trained')\n")
    bob.hpj("submit", "train.py", "--no-project-files", "--wait", "--run-id", "template").ok()
    template = bob.bundle("template")
    secret = alice.home / "private.txt"
    known = secret.read_text().strip()

    def edit(place: Path) -> None:
        point_at(place, secret)

    folders = runs_folders(scene.partition, bob.uid)
    planted = bob.do(lambda: plant(template, "nosy", folders, edit=edit))
    assert planted, "bob could lay his bundle nowhere"
    for words in (("logs", "nosy"), ("show", "nosy"), ("clone", "nosy", "--dry-run"), ("logs", "nosy", "--json")):
        answer = alice.hpj(*words).clean()
        assert known not in answer.out + answer.err, answer.text
    with serving(alice) as server:
        files = [f"code/z{number}" for number in range(3)]
        files += ["code/linked.py", "work/linked.py", "..%2F" * 12 + str(secret)[1:]]
        paths = [f"runs/nosy/code/{path}" for path in files]
        paths += ["runs/nosy/code", "runs/nosy/rendered", "runs/nosy/script", "runs/nosy/logs"]
        paths += ["runs/nosy/logs/raw?node=0&rank=0", "runs/nosy/logs/history"]
        for path in paths:
            status, answer = server.ask("GET", path)
            assert 200 <= status < 500, (path, status)
            assert known not in json.dumps(answer), path


def test_pipes_where_files_should_be_hold_nobody_up(scene: Scene) -> None:
    """Finding 8."""
    alice, bob = scene.alice, scene.bob
    put(bob.project / "train.py", "print('trained')\n")
    bob.hpj("submit", "train.py", "--no-project-files", "--wait", "--run-id", "template").ok()
    template = bob.bundle("template")

    def edit(place: Path) -> None:
        files = json.loads((place / "files.json").read_text())
        for entry in files["files"]:
            entry["digest"] = hashlib.sha256(entry["path"].encode()).hexdigest()
        put(place / "files.json", json.dumps(files))
        names = [entry["path"] for entry in files["files"]]
        names += ["local.json", "native.json", "result.json", "result.pkl", "exception.json"]
        names += ["logs/attempt-1/node-0.rank-0.log", "logs/attempt-1/node-0.log"]
        for name in names:
            put(place / name, "")
            (place / name).unlink()
            os.mkfifo(place / name, 0o666)

    folders = runs_folders(scene.partition, bob.uid)
    planted = bob.do(lambda: plant(template, "pipes", folders, edit=edit))
    assert planted, "bob could lay his bundle nowhere"
    for words in (("show", "pipes"), ("logs", "pipes"), ("clone", "pipes", "--dry-run"), ("runs", "--all-users")):
        alice.begin(*words).answer(2 * LIMIT).clean()
    with serving(alice) as server:
        for path in ("code/main.py", "code/train.py", "work/train.py", "launcher.py"):
            for _ in range(4):
                server.ask("GET", f"runs/pipes/code/{path}", limit=1)
        server.ask("GET", "runs/pipes/rendered", limit=1)
        status, _listed = server.ask("GET", "runs?limit=5", limit=LIMIT)
        assert status == 200, "the server hangs"
        assert server.ask("GET", "clusters/local/nodes", limit=LIMIT)[0] == 200


def test_a_result_that_is_a_pipe_or_a_link_is_not_waited_for_nor_read(scene: Scene) -> None:
    """Finding 8: results, also of a run of one's own whose program laid it there."""
    alice, bob = scene.alice, scene.bob
    lay = {
        "pipe": "mkfifo $HYPERPOD_RECORDS/result.json",
        "zero": "ln -s /dev/zero $HYPERPOD_RECORDS/result.json",
        "link": f"ln -s {alice.home}/secret.json $HYPERPOD_RECORDS/result.json",
        "large": "truncate -s 1T $HYPERPOD_RECORDS/result.json",
    }
    put(alice.home / "secret.json", '"known to alice alone"')
    os.chown(alice.home / "secret.json", alice.uid, alice.uid)
    for person in (alice, bob):
        for name, command in lay.items():
            run_id = f"{person.name}-{name}"
            person.hpj("submit", "--no-project-files", "--wait", "--run-id", run_id, "-c", command).ok()

            def read(run_id: str = run_id) -> int:
                import hyperpod_jlab
                from hyperpod_jlab.core.errors import HyperpodError

                try:
                    print(hyperpod_jlab.get(run_id).result(timeout=30))
                except HyperpodError as error:
                    print(error.code)
                return 0

            going = alice.start(read, words=("result", run_id))
            answer = going.answer(2 * LIMIT).clean()
            assert answer.code == 0, answer.text
            assert "known to alice alone" not in answer.out
