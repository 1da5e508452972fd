"""Archives from a job that nobody vouches for."""

from __future__ import annotations

import io
import random
import struct
import tracemalloc
import zipfile

import pytest

from flow import hub
from flow.artifact import fetch, only_file
from flow.refusal import NothingToDoError, RefusedError
from tests.workflows.archives import zipped
from tests.workflows.job import Job


def refusal(archive: bytes, limit: int = 1000) -> str:
    with pytest.raises(RefusedError) as error:
        only_file(archive, "report.json", limit)
    return str(error.value)


def test_the_one_file_is_read() -> None:
    assert only_file(zipped({"report.json": b"{}"}), "report.json", 2) == b"{}"


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"other.json": b""},
        {"report.json": b"", "report.html": b""},
        {"../report.json": b""},
        {"/report.json": b""},
        {"a/../report.json": b""},
        {"report.json/": b""},
        {"report.json": b"", "../../.bashrc": b""},
    ],
)
def test_any_other_content_is_refused(files: dict[str, bytes]) -> None:
    assert refusal(zipped(files)) == "the artifact must hold report.json and nothing else"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_stands_twice_is_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("report.json", "1")
        archive.writestr("report.json", "2")
    assert refusal(out.getvalue()) == "the artifact must hold report.json and nothing else"


def test_a_link_is_refused() -> None:
    archive = zipped({"report.json": b"/etc/passwd"}, link="report.json")
    assert refusal(archive) == "report.json in the artifact is no regular file"


def test_a_bomb_is_read_no_further_than_its_limit() -> None:
    archive = zipped({"report.json": bytes(64 << 20)})
    assert len(archive) < 100_000
    tracemalloc.start()
    try:
        assert refusal(archive, 4 << 20) == "report.json in the artifact has more than 4,194,304 bytes"
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_a_size_that_the_archive_lies_about_does_not_count() -> None:
    archive = bytearray(zipped({"report.json": bytes(5000)}))
    for signature, offset in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
        struct.pack_into("<I", archive, archive.index(signature) + offset, 10)
    with pytest.raises(RefusedError):
        only_file(bytes(archive), "report.json", 1000)


def test_damaged_archives_are_refused() -> None:
    assert refusal(b"").startswith("the artifact is no readable zip archive")
    whole = zipped({"report.json": random.Random(1).randbytes(400)})
    chance = random.Random(2)
    for _ in range(3000):
        damaged = bytearray(whole[: chance.choice([len(whole), chance.randrange(len(whole))])])
        for _ in range(chance.randrange(1, 4)):
            if damaged:
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            data = only_file(bytes(damaged), "report.json", 1000)
        except RefusedError:
            continue
        assert len(data) <= 1000


@pytest.fixture(autouse=True)
def prepared(job: Job) -> None:
    job.prepare(actions="read", contents="read", pull_requests="read")


def fetched(job: Job, artifacts: dict[str, bytes], limit: int = 1000) -> bytes:
    job.follow(job.github.pulls[0], job.github.head(job.github.pulls[0]), artifacts)
    return fetch(hub.followed(hub.repository("job")).run, "report", "report.json", limit, "job")


def test_the_store_never_sees_the_token(job: Job) -> None:
    assert fetched(job, {"changes": b"", "report": zipped({"report.json": b"{}"})}) == b"{}"
    assert any("/store/" in asked for asked in job.github.asked)


def test_an_artifact_of_another_page_is_found(job: Job) -> None:
    job.github.page = 1
    assert fetched(job, {"changes": b"", "other": b"", "report": zipped({"report.json": b"{}"})}) == b"{}"


def test_a_missing_artifact_is_nothing_to_do(job: Job) -> None:
    with pytest.raises(NothingToDoError, match=r"^run 5000 has no artifact report$"):
        fetched(job, {})


def test_ten_megabytes_are_not_even_downloaded(job: Job) -> None:
    with pytest.raises(RefusedError, match=r"^artifact report has 10,485,760 bytes, more than 8,388,608$"):
        fetched(job, {"report": bytes(10 << 20)})
    assert not any("/zip" in asked for asked in job.github.asked)


def test_a_download_that_is_larger_than_announced_is_cut(job: Job) -> None:
    job.github.sizes["report"] = 10
    with pytest.raises(RefusedError, match=r"^artifact report has more than 8,388,608 bytes$"):
        fetched(job, {"report": bytes(10 << 20)})


def test_an_answer_that_is_no_archive_is_told(job: Job) -> None:
    job.follow(job.github.pulls[0], job.github.head(job.github.pulls[0]), {"report": b""})
    run = hub.followed(hub.repository("job")).run
    with pytest.raises(RefusedError, match=r"^artifact report cannot be downloaded: HTTP 401$"):
        fetch(run, "report", "report.json", 10, "another")
