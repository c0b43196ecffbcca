"""What the golden tests of ``hpj`` share."""

from __future__ import annotations

from tests.aws.conftest import no_aws
from tests.cli.conftest import hpj

__all__ = ["hpj", "no_aws"]
