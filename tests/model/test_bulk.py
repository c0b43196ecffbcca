"""Python's garbage collector is off while many objects are made, and as it was afterwards."""

from __future__ import annotations

import gc

from hyperpod_jlab.core.bulk import without_collections


def test_the_collector_is_off_within_and_on_again_after_the_last():
    with without_collections():
        with without_collections():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        with without_collections():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_an_error_turns_it_on_again():
    try:
        with without_collections():
            raise KeyError
    except KeyError:
        assert gc.isenabled()
