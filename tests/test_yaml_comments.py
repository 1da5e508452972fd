"""Comments and the keys they stand beside, wherever a # may stand."""

from __future__ import annotations

from renderer.yaml_comments import Comment, comments

TEXT = """\
# head
a: |  # block
  x # no
# after
b: {c: 1,  # inside
  d: '# no'}  # é
l:
  # first
  - x: a#b  # item
    y: [2]
  # second
  - 3
"z": "a # no"
# end
"""


def test_every_comment_is_found_with_its_neighbours() -> None:
    assert comments(TEXT) == [
        Comment("head", None, ("a",), full_line=True),
        Comment("block", ("a",), None, full_line=False),
        Comment("after", ("a",), ("b",), full_line=True),
        Comment("inside", ("b",), None, full_line=False),
        Comment("é", ("b",), None, full_line=False),
        Comment("first", ("l",), ("l", 0), full_line=True),
        Comment("item", ("l", 0, "x"), None, full_line=False),
        Comment("second", ("l", 0, "y"), ("l", 1), full_line=True),
        Comment("end", ("z",), None, full_line=True),
    ]


def test_a_file_of_comments() -> None:
    assert comments("# a\n#b") == [Comment("a", None, None, full_line=True), Comment("b", None, None, full_line=True)]
