"""Where a simple fault can be planted in a C source, by clang's syntax tree.

A site is a piece of a function's text and what to put in its place. What comes out of a macro, case labels, static
initialisers and sizeof are left out: there is no expression to choose in at run time.
"""

import concurrent.futures
import dataclasses
import functools
import json
import pathlib
import re
import shlex
import subprocess

BOUNDS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
SWAPS = {"==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-", "-": "+"}
CONDITIONS = {"IfStmt": 0, "WhileStmt": 0, "ConditionalOperator": 0, "DoStmt": 1, "ForStmt": 2}
NO_EXPRESSIONS = {"CaseStmt", "StaticAssertDecl", "UnaryExprOrTypeTraitExpr", "OffsetOfExpr", "EnumDecl"}
SMALL = 10  # one more or less of a bigger constant, a size or a time, breaks no promise
MEMORY = re.compile(r"free|destroy|clear|memset")  # without these there are leaks, which SAN=address looks for


@dataclasses.dataclass
class Site:
    file: str  # under the root
    function: str
    kind: str
    start: int
    end: int
    original: str
    faulty: str
    line: str  # the whole of it, with the piece in [[ ]]
    nth: int  # of those with the same line in this function

    @property
    def key(self):
        """Stays the same when lines above it come and go."""
        again = f" ({self.nth})" if self.nth > 1 else ""
        return f"{self.file} {self.function}, {self.kind}: {self.line}{again}"

    def planted(self, number):
        """The text that is faulty if this mutant is chosen."""
        if self.kind == "dropped":
            return f"if (!mutant_is({number})) {self.original}"
        original = f"!!({self.original})" if self.kind == "negated" else f"({self.original})"
        return f"(mutant_is({number}) ? ({self.faulty}) : {original})"


class Reader:
    """Collects the sites of one source."""

    def __init__(self, file, text):
        self.file, self.text = file, text
        self.sites, self.enums, self.function = [], {}, None

    def span(self, node):
        """Where the node is written, as bytes; None if a macro hides it."""
        places = [node.get("range", {}).get(end, {}) for end in ("begin", "end")]
        offsets = []
        for place in places:
            if "expansionLoc" in place:
                place = place["expansionLoc"]
                word = re.match(rb"\w+\s*", self.text[place.get("offset", 0):])
                if not word or self.text[place["offset"] + word.end():][:1] == b"(" or "isMacroArgExpansion" in place:
                    return None
            if "offset" not in place or "includedFrom" in place:
                return None
            offsets.append((place["offset"], place["offset"] + place["tokLen"]))
        return offsets[0][0], offsets[1][1]

    def add(self, node, kind, change):
        span = self.span(node)
        if span is None:
            return
        original = self.text[slice(*span)].decode()
        faulty = change(original)
        if faulty is None or faulty == original or "\n#" in original:
            return
        before = self.text[self.text.rfind(b"\n", 0, span[0]) + 1:span[0]].decode()
        after = self.text[span[1]:self.text.find(b"\n", span[1])].decode()
        line = " ".join(f"{before}[[{original}]]{after}".split())
        alike = sum((site.function, site.kind, site.line) == (self.function, kind, line) for site in self.sites)
        self.sites.append(Site(self.file, self.function, kind, *span, original, faulty, line, alike + 1))

    def operator(self, node, kind, new):
        left, right = node["inner"]
        whole, before, after = self.span(node), self.span(left), self.span(right)
        if None in (whole, before, after):
            return
        between = self.text[before[1]:after[0]].decode()
        if between.count(node["opcode"]) == 1:
            changed = between.replace(node["opcode"], new)
            self.add(node, kind, lambda _: self.text[whole[0]:before[1]].decode() + changed +
                     self.text[after[0]:whole[1]].decode())

    def walk(self, node, parent):
        kind, inner = node.get("kind"), node.get("inner", [])
        if kind in NO_EXPRESSIONS and kind != "CaseStmt" or node.get("storageClass") == "static":
            return
        if kind in CONDITIONS and len(inner) > CONDITIONS[kind]:
            self.add(inner[CONDITIONS[kind]], "negated", lambda text: f"!({text})")
        if kind == "BinaryOperator" and node["opcode"] in BOUNDS:
            self.operator(node, "off by one", BOUNDS[node["opcode"]])
        if kind == "BinaryOperator" and node["opcode"] in SWAPS and "*" not in node["type"]["qualType"]:
            self.operator(node, "swapped operator", SWAPS[node["opcode"]])
        if kind == "IntegerLiteral" and parent.get("kind") != "InitListExpr":  # {0} is what nobody looks at
            self.add(node, "off by one", neighbour)
            self.add(node, "swapped constant", {"true": "false", "false": "true"}.get)
        if kind == "DeclRefExpr" and node["referencedDecl"]["kind"] == "EnumConstantDecl":
            self.add(node, "swapped constant", lambda text: self.enums.get(text))
        if kind == "CallExpr" and parent.get("kind") == "CompoundStmt" and not MEMORY.search(callee(node)):
            self.add(node, "dropped", lambda _: "")
        for child in inner[1:] if kind == "CaseStmt" else inner:
            if child.get("kind"):
                self.walk(child, node)

    def read(self, tree):
        for declaration in tree["inner"]:
            if declaration["kind"] == "EnumDecl":
                names = [e["name"] for e in declaration.get("inner", []) if e["kind"] == "EnumConstantDecl"]
                self.enums.update(zip(names, names[1:] + names[:1]))
            if declaration["kind"] != "FunctionDecl" or "includedFrom" in declaration["loc"]:
                continue
            self.function = declaration["name"]
            for part in declaration.get("inner", []):
                if part["kind"] == "CompoundStmt":
                    self.walk(part, declaration)
        return self.sites


def neighbour(text):
    """One more, or none for one."""
    number = re.fullmatch(r"(\d+)([uUlL]*)", text)
    if not number or int(number[1]) > SMALL:
        return None
    value = int(number[1])
    return f"{0 if value == 1 else value + 1}{number[2]}"


def callee(node):
    while node["kind"] != "DeclRefExpr":
        node = node["inner"][0]
        if "inner" not in node and node["kind"] != "DeclRefExpr":
            return ""
    return node["referencedDecl"]["name"]


def sites_of(root, source, command):
    flags = [flag for flag in shlex.split(command["command"])[1:] if re.match(r"-[DI]|-std=", flag)]
    dump = subprocess.run(["clang", *flags, "-fsyntax-only", "-w", "-Xclang", "-ast-dump=json", source],
                          cwd=command["directory"], check=True, stdout=subprocess.PIPE).stdout
    return Reader(str(source.relative_to(root)), source.read_bytes()).read(json.loads(dump))


def all_sites(root, build):
    """Of every source of the library; `build` must be built, for the headers that are made there."""
    commands = {}
    for command in json.loads((build / "compile_commands.json").read_text()):
        source = (pathlib.Path(command["directory"]) / command["file"]).resolve()
        if source.is_relative_to(root / "src/lib"):
            commands[source] = command
    with concurrent.futures.ProcessPoolExecutor() as pool:
        found = pool.map(functools.partial(sites_of, root), *zip(*sorted(commands.items())))
    return [site for sites in found for site in sites]
