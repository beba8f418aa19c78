"""C: what a source says, side by side."""

from __future__ import annotations

from tests.support.facts import hashes, said

SOURCE = r"""
    #include <stdio.h>
    #include "list/node.h"

    #define LIMIT 10
    #define TWICE(x) ((x) * 2)

    /* A node. */
    struct node {
        int value, weight;
        struct node *next;
    };

    typedef struct {
        int x;
    } point;

    typedef struct node node_t;
    typedef int (*compare)(const void *, const void *);

    enum color { RED, GREEN = 2 };

    int make(int value);

    static struct node *first, *last = NULL;

    /* Makes a node. */
    static struct node *node_new(int value, struct node *next)
    {
        struct node *made = malloc(sizeof(struct node));
        point at = origin();
        made->next = next;
        next->ops->insert(made, LIMIT);
        visit(made, on_visit);
        return made;
    }

    static const struct ops file_ops = {
        .open = file_open,
    };

    int main(int argc, char **argv)
    {
        return node_new(argc, first)->value;
    }
"""


def test_symbols() -> None:
    facts = said("c", SOURCE)
    assert facts.facts.package == ""
    assert facts.symbols == [
        "4-4 macro LIMIT",
        "5-5 macro TWICE",
        "8-11 struct node | doc: A node.",
        "9-9 field node.value | type: int",
        "9-9 field node.weight | type: int",
        "10-10 field node.next | type: node",
        "13-15 struct point",
        "14-14 field point.x | type: int",
        "17-17 type node_t | type: node",
        "18-18 type compare",
        "20-20 enum color",
        "20-20 field color.RED",
        "20-20 field color.GREEN",
        "24-24 constant first | type: node",
        "24-24 constant last | type: node",
        "27-35 function node_new | type: node | doc: Makes a node.",
        "37-39 constant file_ops | type: ops",
        "41-44 function main | type: int",
    ]
    assert facts.signatures == [
        "#define LIMIT 10",
        "#define TWICE(x)",
        "struct node",
        "int value",
        "weight",
        "struct node *next",
        "typedef struct point",
        "int x",
        "typedef struct node node_t",
        "typedef int (*compare)(const void *, const void *)",
        "enum color",
        "RED",
        "GREEN = 2",
        "static struct node *first",
        "last = NULL",
        "static struct node *node_new(int value, struct node *next)",
        "static const struct ops file_ops = { .open = file_open, }",
        "int main(int argc, char **argv)",
    ]


def test_imports() -> None:
    assert said("c", SOURCE).imports == [
        "1 .: _ <- stdio.h * exported",
        "2 .: _ <- list/node.h * exported",
    ]


def test_bindings() -> None:
    assert said("c", SOURCE).bindings == [
        ".: file_ops : ops",
        ".: first : node",
        ".: last : node",
        "node: next : node",
        "node: value : int",
        "node: weight : int",
        "point: x : int",
        "node_new: at : point",
        "node_new: made : node",
        "node_new: next : node",
        "node_new: value : int",
        "main: argc : int",
        "main: argv : char",
    ]


def test_mentions() -> None:
    assert said("c", SOURCE).mentions == [
        "10 node.next names node",
        "17 node_t names node",
        "24 first names node",
        "27 node_new names node",
        "27 node_new names node",
        "29 node_new names node",
        "29 node_new calls malloc",
        "29 node_new names node",
        "30 node_new names point",
        "30 node_new calls origin",
        "32 node_new calls next.ops.insert",
        "32 node_new names LIMIT",
        "33 node_new calls visit",
        "33 node_new names on_visit",
        "37 file_ops names ops",
        "38 file_ops names file_open",
        "43 main calls node_new",
        "43 main names first",
    ]


PLAIN = r"""
    int run(int a) { return a - -1 + f("a  b"); }
"""


def test_formatting_and_comments_leave_the_hash() -> None:
    formatted = r"""
    /* One. */
    int run( int a )
    {
        return a - -1 // two
            + f( "a  b" );
    }
"""
    assert hashes("c", formatted) == hashes("c", PLAIN)


def test_any_other_change_makes_another_hash() -> None:
    for old, new in (("1", "2"), ("run", "ran")):
        assert hashes("c", PLAIN.replace(old, new)) != hashes("c", PLAIN)
