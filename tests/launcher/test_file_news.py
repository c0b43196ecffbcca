"""News of files wake at once, where there is inotify."""

from __future__ import annotations

import ctypes
import select
from pathlib import Path

import pytest

from hyperpod_jlab.launcher.file_news import FileWatch
from hyperpod_jlab.launcher.system import Signals


def is_news(news: FileWatch) -> bool:
    """Whether something is new by now."""
    assert news.descriptor is not None
    return bool(select.select([news.descriptor], [], [], 0)[0])


def test_a_file_that_grows_is_news_until_it_is_cleared(tmp_path: Path) -> None:
    path = tmp_path / "rank.log"
    path.touch()
    news = FileWatch()
    news.watch(str(path))
    assert not is_news(news)
    with path.open("ab", buffering=0) as file:
        file.write(b"one\n")
        file.write(b"two\n")
        assert is_news(news)
        news.clear()
        assert not is_news(news)
        file.write(b"three\n")
        assert is_news(news)


def test_news_end_a_wait_but_are_no_signal(tmp_path: Path) -> None:
    path = tmp_path / "rank.log"
    path.touch()
    news, signals = FileWatch(), Signals()
    news.watch(str(path))
    path.write_bytes(b"line\n")
    # Without the news the test's own time-out would end it.
    assert not signals.wait(3600, news.descriptor)


def test_a_file_that_is_not_there_is_no_fault(tmp_path: Path) -> None:
    news = FileWatch()
    news.watch(str(tmp_path / "none.log"))
    assert not is_news(news)


def test_without_inotify_there_are_no_news(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    news = FileWatch()
    assert news.descriptor is None
    news.watch(str(tmp_path))
    news.clear()
