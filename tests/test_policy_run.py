"""What policy.yml keeps a run from writing to and from cloning."""

from __future__ import annotations

from content import Content

POLICY = """\
environments:
  test:
    buckets: [data_ant]
    repositories: [github.com/primatrix/*]
"""


def test_every_folder_maxtext_writes_to_is_judged(content: Content) -> None:
    content.write("presets/policy.yml", POLICY)
    content.experiment("a", maxtext={"dump_hlo_gcs_dir": "gs://elsewhere/x", "jax_cache_dir": "/tmp/cache"})
    code, _, err = content.run("render")
    assert code == 1
    assert err.splitlines() == [
        "experiments/ling3-flash/a.yml:9:23: maxtext.dump_hlo_gcs_dir: elsewhere is not allowed in test",
        "    presets/policy.yml allows: data_ant",
    ]


def test_only_allowed_repositories_are_handed_the_token(content: Content) -> None:
    content.write("presets/policy.yml", POLICY)
    content.experiment("a", deploy={"GIT_REPOSITORY": "evil.example.com/a/b.git"})
    code, _, err = content.run("render")
    assert code == 1
    assert err.splitlines()[0] == (
        "experiments/ling3-flash/a.yml:9:21: deploy.GIT_REPOSITORY: evil.example.com/a/b.git is not allowed in test"
    )
