"""The list of the spec's options, which the command line reads instead of the spec, is what the spec says."""

from hyperpod_jlab.core.options import OPTIONS_FILE, dump_options
from hyperpod_jlab.core.spec import JobSpec


def test_the_list_of_options_is_up_to_date():
    assert OPTIONS_FILE.read_text(encoding="utf-8") == dump_options(JobSpec)
