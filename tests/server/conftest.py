"""pytest-jupyter's fixtures, for this folder only.

Loaded as a plugin they would take over the event loop and the async tests of the whole suite, so
they are imported here by name, without the plugin's hooks, and run on pytest-asyncio's loop.
"""

import asyncio

import pytest
from jupyter_server.auth import Authorizer
from pytest_jupyter.jupyter_server import *  # noqa: F403
from traitlets.config import Config

# The hooks came with the star; a conftest that holds them would install them.
del pytest_pyfunc_call, pytest_pycollect_makeitem  # noqa: F821


@pytest.fixture
async def jp_asyncio_loop():
    """The loop that pytest-asyncio runs this test on."""
    return asyncio.get_running_loop()


class RecordingAuthorizer(Authorizer):
    """Writes down what it is asked, and says what it is told to say."""

    asked: list[tuple[str, str]]
    answer = True

    def is_authorized(self, handler, user, action, resource):
        type(self).asked.append((action, resource))
        return type(self).answer


@pytest.fixture
def authorizer():
    """The authorizer of the server under test."""
    RecordingAuthorizer.asked = []
    RecordingAuthorizer.answer = True
    return RecordingAuthorizer


@pytest.fixture
def jp_server_config(authorizer):
    """A server that loads this extension and lets nobody in without a token."""
    return Config(
        {
            "ServerApp": {
                # The terminals would come by default, and warn about handlers that are not ours.
                "jpserver_extensions": {
                    "hyperpod_jlab": True,
                    "jupyter_server_terminals": False,
                },
                "allow_unauthenticated_access": False,
                "authorizer_class": authorizer,
                "reraise_server_extension_failures": True,
            }
        }
    )
