"""Places are named as Python imports them, and tell nothing of the machine."""

import json.decoder
import sys

from axon.profiling import places
from axon.profiling.places import place_of, short_path


def test_a_file_is_named_from_the_folder_that_python_found_it_in() -> None:
    assert short_path(places.__file__) == "axon/profiling/places.py"
    assert short_path(json.decoder.__file__) == "json/decoder.py"
    assert all(not short_path(folder + "/x.py").startswith("/") for folder in sys.path if folder)


def test_a_file_outside_of_all_folders_keeps_its_last_two_names() -> None:
    assert short_path("/nowhere/at/all/x.py") == "all/x.py"
    assert short_path("<string>") == "<string>"


def test_a_function_is_named_with_its_class_and_line() -> None:
    code = json.decoder.JSONDecoder.decode.__code__
    assert place_of(code) == f"JSONDecoder.decode (json/decoder.py:{code.co_firstlineno})"
