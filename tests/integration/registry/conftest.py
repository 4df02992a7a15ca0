"""What tests of the registry share."""
import json

import pytest


@pytest.fixture
def listed(holdfast, tmp_path):
    """What --list says about files: (outcome, key) of each site, in the order of files and lines."""
    def run(files):
        for name, text in files.items():
            path = tmp_path / "work" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = holdfast("registry", "lint", "--list", "--json", ".", cwd=tmp_path / "work")
        assert done.code in (0, 1), done.err
        return [(use["outcome"], use["key"]) for use in json.loads(done.out)["uses"] if use["outcome"] != "release"]

    return run
