"""`holdfast registry risk`: probabilities against exact arithmetic, collisions against brute force."""

import decimal
import fractions
import json
import pathlib
import random
import resource
import subprocess

import pytest

import cli
import hf
import hf_registry
import sanitizers
from cli import EXIT_CONFIG, EXIT_DATA, EXIT_FAILED, EXIT_USAGE

EXIT_COLLISIONS = 1


@pytest.fixture
def risk(holdfast, tmp_path):
    """risk([lock, …]) gives the JSON for such a registry."""

    def ask(locks, **registry):
        path = hf_registry.write(tmp_path, locks, **registry)
        done = holdfast("registry", "risk", "--json", "--registry", path)
        assert (done.code, done.err) == (0, ""), done
        return json.loads(done.out)

    return ask


def row(answer, name):
    return next(entry for entry in answer["risks"] if entry["name"] == name)


def pattern(name, derivation, expected=None, key=""):
    more = f", expected: {expected}" if expected is not None else ""
    return f'name: {name}, key: {{ pattern: "{name}:{{x}}", as: {derivation}{key} }}, lifetime: session{more}'


def fixed(name, number):
    return f"name: {name}, key: {{ fixed: {number} }}, lifetime: session"


# --- probabilities ----------------------------------------------------------------------------------


def exactly(bits, taken, labels):
    """1 - prod(1 - (taken + i) / N), as a fraction."""
    space, free = 2**bits, 1
    for i in range(labels):
        free *= space - taken - i
    return 1 - fractions.Fraction(max(free, 0), space**labels)


def power_sum(power, count):
    """0^p + 1^p + … + (count - 1)^p, exactly, for any count."""
    sums = [count]
    for p in range(1, power + 1):
        # (k + 1)^(p + 1) - k^(p + 1), summed over k < count, is count^(p + 1).
        rest, binomial = count**(p + 1), 1
        for j in range(p):
            rest -= binomial * sums[j]
            binomial = binomial * (p + 1 - j) // (j + 1)
        sums.append(rest // (p + 1))
    return sums[power]


def by_series(bits, labels):
    """The same for very many labels: log(1 - x) as its series, over exact sums of powers."""
    with decimal.localcontext() as context:
        context.prec = 60
        log = -sum(decimal.Decimal(power_sum(j, labels)) / (j * decimal.Decimal(2)**(bits * j))
                   for j in range(1, 12))
        return 1 - log.exp()


def assert_near(found, wanted, tolerance=1e-12):
    assert abs(fractions.Fraction(found) - fractions.Fraction(wanted)) <= tolerance * fractions.Fraction(wanted)


def test_sums_of_powers_are_sums_of_powers():
    for power in range(6):
        for count in range(8):
            assert power_sum(power, count) == sum(k**power for k in range(count))


@pytest.mark.parametrize("derivation, bits", [
    ("fnv1a32", 32), ("fnv1a32-js", 32), ("hashtext", 32), ("sha256", 64), ("fnv1a64", 64),
    ("hashtextextended", 64)])
@pytest.mark.parametrize("labels", [1, 2, 3, 64, 65, 1000, 3000])
def test_the_probability_is_the_exact_one(risk, derivation, bits, labels):
    answer = risk([fixed("f", 5000), fixed("g", -5000), fixed("h", 2**40), pattern("p", derivation, labels)])
    taken = 2 if bits == 32 else 3
    found = row(answer, derivation)
    assert (found["fixed"], found["labels"], found["bits"]) == (taken, labels, bits)
    assert_near(found["probability"], exactly(bits, taken, labels))


@pytest.mark.parametrize("bits, labels", [
    (32, 9292), (32, 77163), (32, 200000), (64, 10**6), (64, 608_926_881), (64, 5_056_937_541),
    (64, 10**10)])
def test_very_many_labels_have_their_exact_probability_too(risk, bits, labels):
    derivation = "sha256" if bits == 64 else "fnv1a32"
    assert_near(row(risk([pattern("p", derivation, labels)]), derivation)["probability"], by_series(bits, labels))


def test_what_must_collide_is_certain_and_what_cannot_is_never(risk):
    def probability(labels):
        found = row(risk([pattern("p", "fnv1a32", labels)]), "fnv1a32")
        return found["probability"], found["words"]

    assert probability(1) == (0, "never")
    assert probability(2**32 + 1) == (1, "certain")
    p, words = probability(2**32)
    assert p < 1 and words == "almost certain (more than 99.9 %)"
    assert row(risk([pattern("p", "sha256", 2**63 - 1)]), "sha256")["probability"] < 1


def test_the_figures_in_circulation_are_put_right(risk):
    """1 000 labels of 32 bits: 0.0116 %, not 0.00000012 %."""
    found = row(risk([pattern("p", "fnv1a32", 1000)]), "fnv1a32")
    assert found["words"] == "about 1 in 8 600 (0.0116 %)"
    assert round(found["labels_at_1_percent"], -2) == 9300
    assert round(found["labels_at_50_percent"], -3) == 77000
    found = row(risk([pattern("p", "sha256", 1000)]), "sha256")
    assert found["words"].startswith("practically never (1 in 3.7e13)")
    assert round(found["labels_at_50_percent"], -8) == 5_100_000_000


@pytest.mark.parametrize("bits, derivation", [(32, "fnv1a32"), (64, "sha256")])
def test_the_count_is_the_first_that_passes(risk, bits, derivation):
    found = row(risk([pattern("p", derivation, 5)]), derivation)
    for p, count in ((0.01, found["labels_at_1_percent"]), (0.5, found["labels_at_50_percent"])):
        assert by_series(bits, count) >= p > by_series(bits, count - 1)


def test_the_whole_space_is_the_product_of_its_parts(risk):
    answer = risk([fixed("f", 5000), fixed("g", 2**40), pattern("a", "fnv1a32", 700), pattern("b", "hashtext", 400),
                   pattern("c", "sha256", 900), pattern("d", "fnv1a64", 800)])
    none = (1 - exactly(32, 1, 1100)) * (1 - exactly(64, 2 + 1100, 1700))
    found = row(answer, "all bigint")
    assert (found["labels"], found["fixed"]) == (2800, 2)
    assert_near(found["probability"], 1 - none)


def test_a_class_is_apart_from_everything_else(risk):
    answer = risk([
        "name: p, key: { pair: [7, 1] }, lifetime: session", "name: q, key: { pair: [7, 2] }, lifetime: session",
        pattern("r", "hashtext", 500, key=", class: 7"), pattern("s", "hashtext", 500)])
    assert_near(row(answer, "class 7")["probability"], exactly(32, 2, 500))
    assert_near(row(answer, "all bigint")["probability"], exactly(32, 0, 500))


# --- the report -------------------------------------------------------------------------------------


def test_too_few_bits_are_reported_with_the_entry_and_the_remedy(holdfast, tmp_path):
    path = hf_registry.write(tmp_path, [
        pattern("small", "sha256", 10), pattern("booking", "fnv1a32-js", 50000), pattern("open", "hashtext")])
    done = holdfast("registry", "risk", "--registry", path)
    assert done.code == 0
    table, rest = done.out.split("\n\n")
    assert "about 1 in 4 (25.3 %)" in table and " 50 000 " in table and "50 010 + ?" in table
    booking, unsaid = rest.splitlines()
    assert booking.startswith(f"{path}:4:") and "booking: 50 000 labels" in booking and "sha256" in booking
    assert unsaid.startswith(f"{path}:5:") and "open: " in unsaid and "expected" in unsaid


def test_advice_is_given_until_the_rest_is_safe(risk):
    locks = [pattern("a", "fnv1a32", 9000), pattern("b", "hashtext", 8000), pattern("c", "fnv1a32-js", 200)]
    advice = risk(locks)["advice"]
    assert [(entry["name"], entry["instead"]) for entry in advice] == [("a", "sha256")]
    assert risk(locks, conventions="max_risk: 0.5")["advice"] == []
    assert [entry["name"] for entry in risk(locks, conventions="max_risk: 0.0001")["advice"]] == ["a", "b"]


def test_an_empty_registry_has_no_risk(holdfast, tmp_path):
    (tmp_path / "locks.yaml").write_text("version: 1\nlocks: []\n")
    done = holdfast("registry", "risk", cwd=tmp_path)
    assert (done.code, done.out) == (0, "") and "no locks" in done.err


def test_without_a_registry_there_is_nothing_to_say(holdfast, tmp_path):
    done = holdfast("registry", "risk", cwd=tmp_path, env={"HOLDFAST_REGISTRY": ""})
    assert (done.code, done.out) == (EXIT_CONFIG, "")


def test_a_list_is_compared_with_the_labels_of_finite_patterns_too(holdfast, tmp_path):
    path = hf_registry.write(tmp_path, [
        "name: words, key: { pattern: '{w}', as: fnv1a32 }, placeholders: { w: [one, costarring] }",
        "name: other, key: { pattern: '{o}', as: fnv1a32 }, placeholders: { o: [liquid] }"])
    (tmp_path / "list").write_text("liquid\n")
    done = holdfast("registry", "risk", "--labels", "list", "--registry", path, "--json", cwd=tmp_path)
    assert done.code == EXIT_COLLISIONS
    labels = json.loads(done.out)["collisions"][0]["labels"]
    assert [(one["label"], one["lock"], one["line"]) for one in labels] == [
        ("liquid", "other", 1), ("costarring", "words", None)]


@pytest.mark.parametrize("arguments", [
    ["--as", "sha256"], ["-0"], ["--labels", "-", "--as", "md4"], ["--labels", "-", "--as", "minted"], ["x"]])
def test_wrong_usage_is_refused(holdfast, arguments, tmp_path):
    done = holdfast("registry", "risk", *arguments, cwd=tmp_path, env={"HOLDFAST_REGISTRY": ""})
    assert (done.code, done.out) == (EXIT_USAGE, "")
    assert done.err.startswith("error: ") and "\nhint: " in done.err


@pytest.mark.parametrize("arguments, text", [([], ""), (["--json"], ""), (["--labels", "-", "--as", "fixed"], "1\n01\n")])
def test_a_full_disk_is_no_success(holdfast, tmp_path, arguments, text):
    path = hf_registry.write(tmp_path, [pattern("p", "sha256", 10)])
    with open("/dev/full", "wb") as full:
        done = subprocess.run([cli.program(), "registry", "risk", "--registry", path, *arguments], stdout=full,
                              stderr=subprocess.PIPE, input=text.encode(), env=holdfast.environment(None))
    assert done.returncode == EXIT_FAILED
    assert b"cannot write" in done.stderr


# --- lists of labels --------------------------------------------------------------------------------


def find_collisions(derivation, wanted, seed=1):
    """Labels that really share a key, found by trying."""
    chance, tried, found = random.Random(seed), {}, []
    while len(found) < wanted:
        label = f"Op:{chance.randrange(10**12)}"
        other = tried.setdefault(hf.derive(label, derivation), label)
        if other != label:
            found.append((other, label))
    return found


@pytest.fixture(scope="module")
def pairs():
    return find_collisions(hf.Derivation.FNV1A32, 2)


@pytest.fixture
def labels(holdfast, tmp_path):
    """labels("a\\nb", "--as", …) gives exit code and JSON; without a registry unless one is named."""

    def ask(text, *options, registry=None, file="labels"):
        path = tmp_path / file
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        chosen = ["--registry", registry] if registry else []
        done = holdfast("registry", "risk", "--json", "--labels", path, *options, *chosen,
                        env={"HOLDFAST_REGISTRY": ""})
        assert done.err == "", done
        answer = json.loads(done.out)
        assert done.code == (EXIT_COLLISIONS if answer["shared_keys"] else 0)
        return answer

    return ask


def groups(answer):
    return [[(entry["label"], entry["line"]) for entry in group["labels"]] for group in answer["collisions"]]


def test_collisions_are_found_where_they_stand(labels, pairs):
    (a, b), (c, d) = pairs
    answer = labels(f"x\n{b}\n{c}\n\ny\n{a}\n{d}\n{b}\n", "--as", "fnv1a32")
    assert groups(answer) == [[(b, 2), (a, 6)], [(c, 3), (d, 7)]]
    assert (answer["labels"], answer["duplicates"], answer["shared_keys"]) == (7, 1, 2)
    assert [group["key"] for group in answer["collisions"]] == [
        hf.derive(a, hf.Derivation.FNV1A32), hf.derive(c, hf.Derivation.FNV1A32)]
    assert groups(labels(f"{a}\n{b}\n{c}\n{d}\n")) == []


def test_people_get_a_table_and_a_sum(holdfast, pairs):
    (a, b), _ = pairs
    done = holdfast("registry", "risk", "--labels", "-", "--as", "fnv1a32", input=f"{a}\n{b}\nx\nx".encode(),
                    env={"HOLDFAST_REGISTRY": ""})
    assert done.code == EXIT_COLLISIONS
    heading, *rows = done.out.splitlines()
    key = str(hf.derive(a, hf.Derivation.FNV1A32))
    assert heading.split() == ["KEY", "LINE", "LABEL", "TIMES", "LOCK"]
    assert [line.split() for line in rows] == [[key, "1", a, "1", "-"], [key, "2", b, "1", "-"]]
    assert done.err == ("note: standard input: 4 labels, 1 of them repeated;"
                        " one key is shared by different ones\n")


@pytest.mark.parametrize("text", ["a\r\nb\r\na\r\n", "a\nb\na", "\n\na\n\nb\r\n\r\na", "\ufeffa\nb\na\n"])
def test_ends_of_lines_are_no_part_of_labels(labels, text):
    answer = labels(text)
    assert (answer["labels"], answer["duplicates"], answer["shared_keys"]) == (3, 1, 0)


def test_labels_may_end_with_nul(labels, pairs):
    (a, b), _ = pairs
    for end in ("", "\0"):
        answer = labels(f"{a}\0\0x\0{b}{end}", "-0", "--as", "fnv1a32")
        assert groups(answer) == [[(a, 1), (b, 4)]]


def test_an_empty_list_has_no_collisions(labels):
    assert labels("")["labels"] == 0
    assert labels("\n\n")["labels"] == 0


@pytest.mark.parametrize("text, options, line, what", [
    (b"a\nb\tc\n", [], 2, "control character"),
    (b"a\n\nb\0c\n", [], 3, "control character"),
    (b"a\0b\nc\0", ["--null"], 2, "control character"),
    (b"a\n" + b"x" * 65537, [], 2, "65537 bytes"),
    (b"x" * 5_000_000, [], 1, "5000000 bytes"),
    (b"a\nb\xff\n", ["--as", "fnv1a32-js"], 2, "UTF-8"),
    (b"1\n2\nthree\n", ["--as", "fixed"], 3, "not a whole number")],
    ids=["tab", "nul", "newline", "long", "huge", "utf8", "number"])
def test_what_is_no_label_is_refused_with_its_line(holdfast, tmp_path, text, options, line, what):
    path = tmp_path / "labels"
    path.write_bytes(text)
    done = holdfast("registry", "risk", "--labels", path, *options, env={"HOLDFAST_REGISTRY": ""})
    assert (done.code, done.out) == (EXIT_DATA, "")
    assert done.err.startswith(f"error: {path}:{line}: ") and what in done.err


def test_bytes_that_are_no_text_have_keys_all_the_same(labels):
    assert labels(b"a\xff\nb\xfe\n" + b"x" * 65536)["labels"] == 3


@pytest.mark.parametrize("path", ["missing", "."])
def test_a_list_that_cannot_be_read_is_named(holdfast, tmp_path, path):
    done = holdfast("registry", "risk", "--labels", tmp_path / path, env={"HOLDFAST_REGISTRY": ""})
    assert (done.code, done.out) == (EXIT_DATA, "")
    assert str(tmp_path / path) in done.err


def test_the_registry_decides_and_takes_part(labels, pairs, tmp_path):
    (a, b), (c, d) = pairs
    number = hf.derive("Op:77", hf.Derivation.FNV1A32)
    registry = hf_registry.write(tmp_path, [
        fixed("cleanup", number), pattern("Op", "fnv1a32", 10),
        'name: other, key: { pattern: "Else:{x}", as: fnv1a32, class: 3 }, lifetime: session'])
    answer = labels(f"{a}\n{b}\nunknown:1\ncleanup\nElse:1\n", registry=registry)
    assert groups(answer) == [[(a, 1), (b, 2)]]
    assert {entry["lock"] for entry in answer["collisions"][0]["labels"]} == {"Op"}
    answer = labels("Op:76\nOp:77\n", registry=registry)
    assert groups(answer) == [[("Op:77", 2), ("cleanup", None)]]
    assert answer["collisions"][0]["key"] == number
    assert groups(labels(f"{a}\n{b}\n", "--as", "sha256", registry=registry)) == []


def test_two_numbers_are_shown_as_a_pair(labels, pairs, tmp_path):
    (a, b), _ = pairs
    registry = hf_registry.write(tmp_path, [pattern("Op", "fnv1a32", 10, key=", class: -3")])
    group, = labels(f"{a}\n{b}\n", registry=registry)["collisions"]
    assert group["pair"] == [-3, hf.derive(a, hf.Derivation.FNV1A32)]


def test_a_label_of_two_locks_is_the_registrys_fault(holdfast, tmp_path):
    registry = hf_registry.write(tmp_path, [
        'name: a, key: { pattern: "a:{x}", as: fnv1a32 }, lifetime: session',
        'name: b, key: { pattern: "{x}:b", as: sha256 }, lifetime: session'])
    done = holdfast("registry", "risk", "--labels", "-", "--registry", registry, input=b"a:1\na:b\n")
    assert (done.code, done.out) == (EXIT_CONFIG, "")
    assert done.err.startswith("error: standard input:2: 'a:b' matches two locks")


@pytest.mark.parametrize("derivation", ["fnv1a32", "fnv1a32-js", "hashtext", "sha256", "fnv1a64", "hashtextextended"])
def test_random_lists_have_the_collisions_that_a_dictionary_finds(labels, derivation):
    chance = random.Random(derivation)
    texts = [f"{chance.choice(['Job', 'Büro', '東'])}:{chance.randrange(10**9)}" for _ in range(150_000)]
    texts += chance.sample(texts, 1000)
    lines, shared = {}, {}
    for number, text in enumerate(texts, 1):
        lines.setdefault(text, number)
    for text in lines:
        shared.setdefault(hf.derive(text, hf.Derivation[derivation.upper().replace("-", "_")]), []).append(text)
    wanted = {key: sorted((lines[text], text) for text in group) for key, group in shared.items() if len(group) > 1}
    assert wanted or derivation in ("sha256", "fnv1a64", "hashtextextended")
    answer = labels("\n".join(texts), "--as", derivation)
    assert answer["duplicates"] == len(texts) - len(lines)
    assert {group["key"]: [(entry["line"], entry["label"]) for entry in group["labels"]]
            for group in answer["collisions"]} == wanted


@sanitizers.with_own_memory
def test_memory_stays_within_what_the_manual_says(holdfast, tmp_path):
    """16 bytes a label, growing by half, and the text itself."""
    count = 2_000_000
    path = tmp_path / "labels"
    path.write_bytes(b"".join(b"Job:%012d\n" % i for i in range(count)))
    room = path.stat().st_size + count * 16 * 3 // 2 + (160 << 20)  # the program, its libraries and slack

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (room, room))

    done = subprocess.run([cli.program(), "registry", "risk", "--json", "--labels", path], capture_output=True,
                          preexec_fn=limit, env=holdfast.environment({"HOLDFAST_REGISTRY": ""}))
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["labels"] == count


@sanitizers.with_own_memory
def test_too_little_memory_is_said(holdfast, tmp_path):
    path = tmp_path / "labels"
    path.write_bytes(b"Job:12345678\n" * 3_000_000)

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (64 << 20, 64 << 20))

    done = subprocess.run([cli.program(), "registry", "risk", "--labels", pathlib.Path(path)], capture_output=True,
                          preexec_fn=limit, env=holdfast.environment({"HOLDFAST_REGISTRY": ""}))
    assert done.returncode == EXIT_FAILED
    assert b"out of memory" in done.stderr
