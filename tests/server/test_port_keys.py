"""Tickets and keys of ports: how long they last, and how many there are."""

import pytest
from jupyter_server.auth import User

from hyperpod_jlab.core.errors import DeniedError
from hyperpod_jlab.server.port_keys import (
    IDLE_TIMEOUT_S,
    TICKET_TTL_S,
    PortAddress,
    PortKeys,
    ProgramCookies,
)

PLACE = PortAddress("run", 0, 6006)
ALICE = User("alice")


class Clock:
    """Goes on when it is told to."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def keys(clock):
    return PortKeys(clock)


def opened(keys):
    return keys.redeem(keys.issue("alice", PLACE), ALICE, PLACE)


def test_a_ticket_that_waited_too_long_opens_nothing(keys, clock):
    ticket = keys.issue("alice", PLACE)
    clock.now += TICKET_TTL_S + 1
    with pytest.raises(DeniedError):
        keys.redeem(ticket, ALICE, PLACE)


def test_a_ticket_that_was_tried_in_the_wrong_place_is_used_up(keys):
    ticket = keys.issue("alice", PLACE)
    with pytest.raises(DeniedError):
        keys.redeem(ticket, User("bob"), PLACE)
    with pytest.raises(DeniedError):
        keys.redeem(ticket, ALICE, PLACE)


def test_a_key_stays_while_it_is_used(keys, clock):
    key = opened(keys)
    for _ in range(3):
        clock.now += IDLE_TIMEOUT_S - 1
        assert keys.find(key, PLACE).user is ALICE
    clock.now += IDLE_TIMEOUT_S + 1
    with pytest.raises(DeniedError):
        keys.find(key, PLACE)


def test_a_ticket_is_no_key(keys):
    with pytest.raises(DeniedError):
        keys.find(keys.issue("alice", PLACE), PLACE)


def test_of_many_keys_the_one_that_was_used_longest_ago_goes(keys):
    made = [opened(keys) for _ in range(64)]
    assert len(set(made)) == 64
    keys.find(made[0], PLACE)
    opened(keys)
    assert keys.find(made[0], PLACE)
    with pytest.raises(DeniedError):
        keys.find(made[1], PLACE)


def test_many_and_long_cookies_are_bounded():
    cookies = ProgramCookies()
    cookies.add_header(f"long={'x' * 5000}")
    assert cookies.header_for("/") == ""
    for number in range(100):
        cookies.add_header(f"c{number}=1")
    assert len(cookies.header_for("/").split("; ")) == 64
    cookies.add_header("c99=; Expires=Thu, 01 Jan 1970 00:00:00 GMT")
    assert "c99" not in cookies.header_for("/")
