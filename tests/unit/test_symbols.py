"""What the shared library gives to its callers, and what it may not ask of the system."""
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).parents[2]
LIBRARY = pathlib.Path(os.environ["HOLDFAST_BUILD"]) / "src" / "lib" / "libholdfast.so"

FORBIDDEN = {
    "the environment": r"(put|set|unset|clear)env|environ",
    "exits": r"exit|_exit|_Exit|quick_exit|abort|__assert_fail|errx?|verrx?|error",
    "signals": r"signal|sigaction|sigprocmask|pthread_sigmask|sigset|kill|raise|alarm|setitimer",
    "output": r"v?printf|puts|putchar|perror|v?syslog|v?warnx?|stdout|stderr|psignal"
    r"|__v?printf_chk|__v?syslog_chk",
    "programs": r"system|popen|exec[lv]p?e?|posix_spawnp?",
}


def symbols(*options):
    command = ["nm", "-D", *options, LIBRARY]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


def declared():
    header = "".join(path.read_text() for path in sorted((ROOT / "include/holdfast").glob("*.h")))
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    return set(re.findall(r"HF_API\b[^;]*?\b(hf_\w+)\s*\(", header))


def test_exports_are_exactly_the_public_header():
    exported = {name for name in symbols("--defined-only") if not name.startswith("HOLDFAST_")}
    assert exported == declared()


def test_the_export_list_is_exactly_the_public_header():
    listed = re.findall(r"^\s+(hf_\w+);", (ROOT / "src/lib/libholdfast.map").read_text(), flags=re.M)
    assert sorted(listed) == sorted(declared())


def test_the_library_leaves_the_process_alone():
    wanted = symbols("--undefined-only")
    found = {
        why: sorted(name for name in wanted if re.fullmatch(pattern, name))
        for why, pattern in FORBIDDEN.items()
    }
    assert not {why: names for why, names in found.items() if names}


def test_the_environment_is_read_in_one_room():
    command = ["nm", "-A", "--undefined-only", LIBRARY.with_suffix(".a")]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    readers = {line.split(":")[1] for line in lines if re.fullmatch(r"(secure_)?getenv|getcwd", line.split()[-1])}
    assert readers == {"environment_environment.c.o"}


def test_what_only_programs_need_is_not_in_the_library():
    room = (ROOT / "src/base/meson.build").read_text()
    listed = re.search(r"base_program_sources = files\((.*?)\)", room, flags=re.S).group(1)
    for_programs = set(re.findall(r"'(\w+\.c)'", listed))
    command = ["ar", "t", LIBRARY.with_suffix(".a")]
    members = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    of_base = {name for member in members for name in re.findall(r"base_(\w+\.c)\.o$", member)}
    assert for_programs and "buf.c" in of_base
    assert not for_programs & of_base
