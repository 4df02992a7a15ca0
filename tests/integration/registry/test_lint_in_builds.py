"""contrib/pre-commit, contrib/github and contrib/gitlab: each runs as its host would run it."""
import json
import os
import shlex
import subprocess

import pytest
import yaml

import hf

CONTRIB = hf.ROOT / "contrib"
REGISTRY = "version: 1\nlocks:\n  - name: report\n    key: { fixed: 42424242 }\n    lifetime: session\n    owner: us\n"
GOOD = 'db.run("SELECT pg_try_advisory_lock(42424242)").one()\nassert db.run("SELECT pg_advisory_unlock(42424242)").one()\n'
STRAY = GOOD + 'db.run("SELECT pg_advisory_xact_lock(987654321)")\n'


@pytest.fixture
def project(tmp_path):
    """A repository with a registry and a file, in which commands find holdfast."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "locks.yaml").write_text(REGISTRY)
    (root / "a.py").write_text(GOOD)
    env = dict(os.environ, PATH=f"{hf.BUILD / 'src'}:{os.environ['PATH']}", GIT_CONFIG_GLOBAL="/dev/null",
               GIT_AUTHOR_NAME="us", GIT_AUTHOR_EMAIL="us@localhost", GIT_COMMITTER_NAME="us",
               GIT_COMMITTER_EMAIL="us@localhost")

    def run(*command, **more):
        return subprocess.run(command, cwd=root, env=dict(env, **more), capture_output=True, text=True, timeout=60)

    run.root = root
    assert run("git", "init", "-q").returncode == 0
    return run


def test_the_hook_of_git_refuses_a_commit_with_a_stray_lock(project):
    hook = project.root / ".git/hooks/pre-commit"
    hook.write_bytes((CONTRIB / "pre-commit/pre-commit").read_bytes())
    hook.chmod(0o755)
    project("git", "add", "-A")
    assert project("git", "commit", "-qm", "good").returncode == 0
    (project.root / "a.py").write_text(STRAY)
    refused = project("git", "commit", "-qam", "stray")
    assert refused.returncode != 0
    assert "unregistered-id" in refused.stdout + refused.stderr
    assert project("holdfast", "registry", "lint", "--write-baseline", "lint.baseline").returncode == 0
    assert project("git", "commit", "-qam", "accepted").returncode == 0


def test_the_hooks_of_the_framework_run(project):
    hooks = yaml.safe_load((CONTRIB / "pre-commit/pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert all(project(*shlex.split(hook["entry"])).returncode == 0 for hook in hooks)
    (project.root / "a.py").write_text(STRAY)
    assert [project(*shlex.split(hook["entry"])).returncode for hook in hooks] == [0, 1]


def test_the_github_action_annotates_and_fails(project):
    action = yaml.safe_load((CONTRIB / "github/action.yml").read_text())
    (step,) = action["runs"]["steps"]

    def run(**inputs):
        values = {name: inputs.get(name, of["default"]) for name, of in action["inputs"].items()}
        env = {}
        for name, value in step["env"].items():
            for key, chosen in values.items():
                value = value.replace("${{ inputs.%s }}" % key, chosen)
            env[name] = value
        return project(step["shell"], "-e", "-c", step["run"], **env)

    assert run().returncode == 0
    (project.root / "a.py").write_text(STRAY)
    failed = run()
    assert failed.returncode == 1
    assert "::warning file=a.py,line=3" in failed.stdout
    project("holdfast", "registry", "lint", "--write-baseline", "accepted")
    assert run(baseline="accepted").returncode == 0


def test_the_gitlab_job_keeps_a_report_and_fails(project):
    job = yaml.safe_load((CONTRIB / "gitlab/holdfast-lint.yml").read_text())["holdfast-lint"]
    script = "set -e\n" + "\n".join(job["script"])
    assert project("sh", "-c", script).returncode == 0
    (project.root / "a.py").write_text(STRAY)
    failed = project("sh", "-c", script)
    assert failed.returncode == 1
    report = json.loads((project.root / job["artifacts"]["paths"][0]).read_text())
    assert [result["ruleId"] for result in report["runs"][0]["results"]] == ["unregistered-id"]
    assert "987654321" in failed.stdout
