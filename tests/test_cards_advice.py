"""The advice of the shipped cards: it names settings that the releases know, and never shows a hole or a guess."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from lmdiag.diagnose.advice import personal, reason
from lmdiag.diagnose.edits import UNSET
from lmdiag.diagnose.known import known_values
from lmdiag.match.card_sites import rows_of_rule
from lmdiag.match.cards import load_card, load_cards
from lmdiag.match.conditions import holds
from lmdiag.match.library import Library, open_library
from lmdiag.match.prose import filled
from lmdiag.match.settings import exists, known_in
from lmdiag.match.sums import placeholders
from lmdiag.match.versions import release_order
from lmdiag.model import Card, ClueSeen, Facts, Incident, Solution
from lmdiag.samples import CardSet, diagnose, sample_problems

RULES = Path(__file__).parent.parent / "rules"
PATHS = sorted(RULES.rglob("*.toml"))
OTHERS = re.compile(
    r"(?:NCCL|GLOO|HF|HUGGING_FACE|CUDA|PYTORCH|TORCH|TORCHINDUCTOR|RAY|HIP|ROCR|UCX|NIXL|MC|OMP|LD|TRITON|FLASHINFER|MAX|TRANSFORMERS|"
    r"PYTHONHASHSEED|NVIDIA|SAFETENSORS|MOONCAKE|RUNAI|AWS|SSL|REQUESTS|HTTP|HTTPS|NO|TMPDIR|XDG|DG|CC|CXX|PATH|HOME|USER|TOKENIZERS)(?:_[A-Z0-9_]+)?"
)
"""Variables that other projects read: NCCL, Hugging Face, CUDA, PyTorch, Ray, UCX, the shell."""

each_card = pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])


@cache
def library() -> Library:
    return open_library()


def card_of(path: Path) -> Card:
    card, problems = load_card(str(path))
    assert card is not None, problems
    return card


def covered(card: Card, project: str) -> list[str]:
    """The releases of a project that raise a message of the card, oldest first; of a card about others' messages all."""
    sites = library().sites[0]
    found: set[str] = set()
    for rule in card.rules:
        for row in rows_of_rule(rule, sites) if rule.message and not card.raised_at else ():
            for site in row.sites:
                if site.project == project:
                    found |= {name for number, name in enumerate(site.releases) if site.is_in(number)}
    return sorted(found or sites.catalog.versions[project], key=release_order)


def is_given(solution: Solution, known: dict[str, str]) -> bool:
    """Whether versions alone do not rule a solution out: conditions on other facts may hold."""
    ways = [[part for part in way.split(" and ") if "_version" in part] for way in solution.when.split(" or ")]
    return not holds(solution.unless, known) and any(all(holds(part, known) for part in way) for way in ways)


@each_card
def test_each_change_names_a_setting_of_the_releases(path: Path) -> None:
    """The newest release that raises the message knows it, unless a condition says for which releases the advice is."""
    card, table = card_of(path), library().settings
    newest = {"vllm": covered(card, "vllm")[-1], "lmcache": covered(card, "lmcache")[-1]}
    known = {"vllm_version": newest["vllm"], "lmcache_version": newest["lmcache"]}
    for solution in card.solutions:
        for key, value in solution.change:
            assert exists(table, key) or OTHERS.fullmatch(key), f"{key}: no release has it"
            if value != UNSET and is_given(solution, known):
                assert known_in(table, key, newest) is not False, f"{key}: not in {newest}"


def all_texts(card: Card, known: dict[str, str], facts: Facts) -> list[str]:
    advice = personal(card.solutions, known, facts, library())
    texts = [filled(text, known) for text in (card.meaning, card.trigger, card.verify)]
    texts += [filled(case.text, known) for case in card.cases]
    texts += [item.text for item in advice]
    texts += [value for item in advice for _, value in item.change]
    texts += [text for item in advice for edit in item.edits for text in (edit.before, edit.after) if text]
    return texts


def incidents(card: Card) -> list[Incident]:
    """The incidents of the card's samples."""
    return [item for sample in card.samples for item in diagnose(sample.log, CardSet([card])) if item.card == card.id]


@each_card
def test_no_text_shows_a_hole_whatever_the_log_lacks(path: Path) -> None:
    card = card_of(path)
    shown = incidents(card)
    assert shown
    for incident in shown:
        for missing in (None, *(name for name, _ in incident.fields), "all"):
            fields = [pair for pair in incident.fields if missing not in (pair[0], "all")]
            for facts in (incident.facts, Facts()):
                texts = all_texts(card, known_values(fields, facts, incident.outcome, ()), facts)
                left = [hole for text in texts for hole in placeholders(text)]
                assert left == []
                assert sum(text.count("None") for text in texts) <= repr(card).count("None")  # those that the card says itself
                assert all(text.strip() for text in texts[:2])


@each_card
def test_a_clue_of_a_card_is_used_by_it(path: Path) -> None:
    """A clue that nothing rests on is not looked for."""
    card = card_of(path)
    words = repr((card.cases, card.solutions, card.meaning, card.trigger))
    assert [clue.name for clue in card.clues if f"log.{clue.name}" not in words] == []


def test_the_cases_of_a_card_are_told_apart_by_their_clues() -> None:
    """Each case holds for a log with what it names, and none does for an empty one."""
    for card in load_cards(str(RULES))[0]:
        for case in card.cases:
            seen = [ClueSeen(clue.name, 1, clue.message, ()) for clue in card.clues if f"log.{clue.name}" in case.when]
            if seen and re.fullmatch(r"log\.\w+", case.when):
                assert reason(card._replace(cases=(case,)), known_values([], Facts(), "start_failed", seen)) is not None
        assert reason(card, {}) is None


class Case(NamedTuple):
    """A server for which a card computes a value that none of its samples needs."""

    card: str
    key: str
    value: str
    fields: dict[str, str]
    arguments: dict[str, str] | None = None
    vllm_version: str | None = None
    platform: str | None = None
    outcome: str = "start_failed"


COMPUTED = [
    Case("configuration-value-out-of-range", "--gpu-memory-utilization", "0.9", {}, {"gpu_memory_utilization": "90.0"}),
    Case("draft-slots-use-up-batch-budget", "--max-num-batched-tokens", "10752", {"left": "-512"}, {"max_num_batched_tokens": "2048"}),
    Case("gpu-out-of-memory", "--gpu-memory-utilization", "0.9", {}, {"gpu_memory_utilization": "0.95"}, outcome="died"),
    Case("invalid-repository-id", "--override-generation-config", '{"top_p": 0.9}', {"model": '{"top_p": 0.9}'}, {"generation_config": "'{\"top_p\": 0.9}'"}),
    Case("kv-cache-too-small-for-max-model-len", "VLLM_CPU_KVCACHE_SPACE", "39", {"needed": "38.87"}, platform="cpu"),
    Case("kv-offload-shm-too-small", "--kv-offloading-size", "14.86", {"free": "16022"}, {"kv_offloading_size": "40.0"}),
    Case("media-too-large", "VLLM_MAX_IMAGE_PIXELS", "268435456", {"found": "268435456", "dimensions": "16384 x 16384"}),
    Case("no-kernel-for-quantized-layer", "--pipeline-parallel-size", "4", {"reasons": "7392 not divisible by 128"}, {"tensor_parallel_size": "4"}),
    Case("num-speculative-tokens-not-divisible", "--num-speculative-tokens", "3", {"tokens": "4", "n_predict": "3"}, vllm_version="0.8.1"),
    Case("sampler-warmup-out-of-memory", "--gpu-memory-utilization", "0.85", {"requests": "256"}, {"gpu_memory_utilization": "0.9"}),
    Case("structured-output-backend-per-request", "--structured-outputs-config.backend", "outlines", {"wanted": "outlines"}, vllm_version="0.12.0"),
    Case("structured-output-backend-per-request", "--guided-decoding-backend", "outlines", {"wanted": "outlines"}, vllm_version="0.10.0"),
]  # fmt: skip


@pytest.mark.parametrize("case", COMPUTED, ids=[f"{case.card} {case.key}" for case in COMPUTED])
def test_a_computed_value_is_right(case: Case) -> None:
    facts = Facts(vllm_version=case.vllm_version, platform=case.platform, arguments=tuple((case.arguments or {}).items()))
    card = card_of(next(path for path in PATHS if path.stem == case.card))
    known = known_values(case.fields.items(), facts, case.outcome, ())
    assert (case.key, case.value) in [pair for item in personal(card.solutions, known, facts, library()) for pair in item.change]


@each_card
def test_each_computed_value_is_compared_with_the_right_one(path: Path) -> None:
    """By a sample's `change`, which `cards check` compares too, or by a case above."""
    card = card_of(path)
    values = [(key, value) for solution in card.solutions for key, value in solution.change]
    computed = {key for key, value in values if placeholders(value)}
    compared = {key for sample in card.samples for key, _ in sample.change}
    assert computed - compared - {case.key for case in COMPUTED if case.card == card.id} == set()


def test_the_samples_of_all_cards_give_what_they_promise() -> None:
    cards, _ = load_cards(str(RULES))
    assert list(map(str, sample_problems(cards))) == []
