"""The languages that are read: which a file is in, and each one's grammar, query and rules.

A language is a query and a module of one value. To add one:

1.  `LANGUAGES` below: its name with its file extensions, and its names of files and of
    interpreters (`#!`), if any.
2.  `<name>.py` beside this file, with `RULES = Rules(...)`; see `rules.py` for what it can say.
    Modules are loaded by name, when the first file of their language is read.
3.  `<name>.scm`: the patterns. Captures are told apart by their name alone:

    `@definition.<kind>`
        A definition as a whole, with `@name`; kinds are those of `SymbolKind` in small letters.
        A `function` in a type is made a method. A `constant` in a type is made a field, and one in
        a function is left out, as is a `field` in one. Where several patterns match one node, the
        first of the file says its kind, name and body. Where one pattern matches one node with
        several names, each is a symbol: `int a, b;`.
    `@body`
        Where the signature ends. Where nothing is captured, the node's field `body`.
    `@type`
        Declared type of its result or value.
    `@inherits`, `@implements`
        Types that it inherits from or implements, one capture each.
    `@receiver`
        The type that it is a member of though it stands elsewhere; of an `other` (an `impl`, an
        extension) the type that it adds members to.
    `@doc`
        A text that documents it. Otherwise the comments right above do (`Rules.doc_marks`).
    `@property`, `@static`
        Says that it is one, wherever the capture is.
    `@whole`
        With `@of`: what belongs to the definition `@of` and is hashed with it, such as
        decorators; documentation stands above it.

    These belong to the `@definition` or `@of` of their match, else to the innermost definition
    around them. `@of` is a node that another pattern captures as a definition.

    `@call`         the callee of a call, without its arguments; or the call as a whole, with
                    `@upto` in the same match where its callee ends
    `@reference`    an expression or type that is named; kept if it is a chain of names
    `@import`       a statement that `Rules.imports` takes apart
    `@package`      the name of the file's package or namespace
    `@binding.name` with `@binding.type` or `@binding.value` in the same match: a name and its
                    type, or the expression that it holds. `self.x` is the type's. The same match
                    may be a definition
    `@binding.field` for `@binding.name`: it is the type's around (`constructor(private x: X)`)
    `@binding.parameter` for `@binding.name`: it is none unless a function is around
    `@local`        a name of which nothing is known but that it is a local one: it hides what the
                    file defines or imports under that name, and is bound to `?`
    `@attribute`    what may stand between documentation and a definition, or at a definition's
                    beginning, and is no part of its signature; what it calls is not called
    `@comment`, `@text`, `@hole`
                    comments; string literals, in one piece; code within a string literal
    `@block`        a block, where indentation makes it (`Layout.INDENTED`)

A pattern may not repeat over siblings (`(_)* @x`): the binding would give one match for each
count. Say `(parent (_) @x)` and let each be a match.
"""

from __future__ import annotations

import importlib
import re
import warnings
from dataclasses import dataclass
from functools import cache
from importlib import resources

from tree_sitter import Language, Parser, Query

from muniment.code.languages.rules import Import, Rules

__all__ = ["LANGUAGES", "Grammar", "Import", "Rules", "language_of", "load"]


@dataclass(frozen=True, slots=True)
class _Files:
    """By what a file's language is told."""

    extensions: str
    names: str = ""
    interpreters: str = ""


LANGUAGES: dict[str, _Files] = {
    "bash": _Files("sh bash zsh ksh bats", interpreters="bash sh zsh ksh dash"),
    "c": _Files("c h"),
    "c_sharp": _Files("cs csx"),
    "cpp": _Files("cc cpp cxx c++ hh hpp hxx h++ inl ipp tpp ino cu cuh"),
    "css": _Files("css"),
    "elixir": _Files("ex exs", interpreters="elixir"),
    "go": _Files("go"),
    "html": _Files("html htm xhtml"),
    "java": _Files("java"),
    "javascript": _Files("js mjs cjs jsx", interpreters="node"),
    "json": _Files("json jsonc webmanifest"),
    "kotlin": _Files("kt kts"),
    "lua": _Files("lua", interpreters="lua luajit"),
    "markdown": _Files("md markdown mdx"),
    "php": _Files("php phtml", interpreters="php"),
    "python": _Files("py pyi pyw", interpreters="python pypy"),
    "ruby": _Files(
        "rb rake gemspec ru podspec",
        names="Gemfile Rakefile Guardfile Capfile Vagrantfile Podfile Fastfile",
        interpreters="ruby",
    ),
    "rust": _Files("rs"),
    "scala": _Files("scala sc sbt"),
    "solidity": _Files("sol"),
    "sql": _Files("sql ddl psql"),
    "swift": _Files("swift"),
    "toml": _Files("toml"),
    "tsx": _Files("tsx"),
    "typescript": _Files("ts mts cts", interpreters="deno"),
    "yaml": _Files("yaml yml"),
    "zig": _Files("zig"),
}

_BY_EXTENSION = {
    extension: language
    for language, files in LANGUAGES.items()
    for extension in files.extensions.split()
}
_BY_NAME = {name: language for language, files in LANGUAGES.items() for name in files.names.split()}
_BY_INTERPRETER = {
    interpreter: language
    for language, files in LANGUAGES.items()
    for interpreter in files.interpreters.split()
}
_ONLY_CPP = re.compile(
    rb"^[ \t]*(?:class|namespace|template|using|public:|private:)\b", re.MULTILINE
)
_SHEBANG = re.compile(rb"#!\s*(?:\S*/)?(?:env\s+(?:-\S+\s+)*)?(?:\S*/)?([A-Za-z]+)")


def language_of(path: str, head: bytes) -> str | None:
    """The language of a file by its name, or by the interpreter that its first line asks for."""
    name = path.rsplit("/", 1)[-1]
    known = _BY_NAME.get(name) or _BY_EXTENSION.get(name.rpartition(".")[2].lower())
    if known == "c" and _ONLY_CPP.search(head):
        return "cpp"
    if known is not None and ("." in name or name in _BY_NAME):
        return known
    shebang = _SHEBANG.match(head) if "." not in name else None
    return _BY_INTERPRETER.get(shebang.group(1).decode()) if shebang else None


@dataclass(frozen=True, slots=True)
class Grammar:
    """A language ready to be read."""

    rules: Rules
    parser: Parser
    query: Query


@cache
def load(language: str) -> Grammar:
    """The grammar, query and rules of one of `LANGUAGES`, which are kept from then on."""
    rules: Rules = importlib.import_module(f"{__name__}.{language}").RULES
    module, function = rules.grammar
    with warnings.catch_warnings():
        # Older wheels hand their grammar over as a number, which the binding takes but dislikes.
        warnings.simplefilter("ignore", DeprecationWarning)
        grammar = Language(getattr(importlib.import_module(module), function)())
    here = resources.files(__name__)
    patterns = "\n".join(here.joinpath(f"{name}.scm").read_text("utf-8") for name in rules.query)
    return Grammar(rules, Parser(grammar), Query(grammar, patterns))
