"""Made-up incidents and a card that the tests of the reports share."""

from __future__ import annotations

from lmdiag.model import (
    Advice,
    Card,
    ClueSeen,
    Earlier,
    Edit,
    Facts,
    Incident,
    MatchRule,
    RaisedAt,
    RaiseSite,
    Root,
    Sample,
    Solution,
    Summary,
    Symptom,
)

ADAPTER = "vllm/distributed/kv_transfer/kv_connector/v1/lmcache_integration/vllm_v1_adapter.py"
URL = f"https://github.com/vllm-project/vllm/blob/v0.26.0/{ADAPTER}#L508"

CARD = Card(
    id="lmcache-mla-layerwise",
    title="LMCache: layer-wise transfer does not support MLA models",
    severity="critical",
    scope="startup",
    tags=("lmcache", "mla"),
    rules=(
        MatchRule(
            "lmcache-mla-layerwise",
            "layerwise MLA connector is not supported yet",
            ("ValueError",),
            ("vllm_v1_adapter.py:_init_lmcache_engine",),
        ),
    ),
    meaning="Neither layer-wise connector of LMCache's vLLM adapter knows the latent layout of MLA, so the adapter "
    "refuses the combination at start instead of failing in the first transfer.",
    trigger="`use_layerwise: true` in LMCache's configuration, with an MLA model.\n\nBlending needs it too.",
    situations=("A configuration of a Llama server is copied to a DeepSeek one.",),
    solutions=(
        Solution("Set `use_layerwise` to `false`.", (("lmcache.use_layerwise", "false"),)),
        Solution("Serve without LMCache.", (("--kv-transfer-config", ""),), "disruptive", "the cache is shared"),
    ),
    example_before="chunk_size: 256\nuse_layerwise: true\n",
    example_after="chunk_size: 256\nuse_layerwise: false\n",
    verify="`grep use_layerwise lmcache.yaml` shows `false`.",
    related=("lmcache-mla-naive-serde",),
    references=("https://github.com/LMCache/LMCache/issues/1234",),
    raised_at=(RaiseSite("vllm", ADAPTER, "_init_lmcache_engine", (("0.11.0", 480), ("0.26.0", 508))),),
    aliases=("mla-layerwise",),
    samples=(Sample("ValueError: layerwise MLA connector is not supported yet", (("a", "b"),)),),
    near_misses=(Sample("layerwise MLA connector is supported"),),
    path="rules/lmcache/lmcache-mla-layerwise.toml",
)

FACTS = Facts(
    vllm_version="0.26.0",
    lmcache_version="0.5.6",
    model="deepseek-ai/DeepSeek-V3",
    architecture="DeepseekV3ForCausalLM",
    platform="cuda",
    arguments=(
        ("model", "'deepseek-ai/DeepSeek-V3'"),
        ("tensor_parallel_size", "8"),
        ("kv_transfer_config", "KVTransferConfig(kv_connector='LMCacheConnectorV1')"),
        ("port", "8001"),
    ),
    restarts=2,
)

MATCHED = Incident(
    id="a1",
    fingerprint="f1",
    state="opened",
    card=CARD.id,
    title=CARD.title,
    severity="critical",
    scope="startup",
    confidence="exact",
    cause_visible=True,
    outcome="start_failed",
    root=Root("ValueError", "layerwise MLA connector is not supported yet", "Worker_TP0", 4242),
    raised_at=RaisedAt("vllm", "0.26.0", ADAPTER, 508, "_init_lmcache_engine", URL),
    symptoms=(
        Symptom("RuntimeError", "Engine core initialization failed. See root cause above.", "APIServer"),
        Symptom("RuntimeError", "Engine core initialization failed. See root cause above.", "APIServer"),
        Symptom("Exception", "WorkerProc initialization failed.", "EngineCore_DP0"),
    ),
    fields=(("layers", "61"),),
    facts=FACTS,
    advice=(
        Advice("Set `use_layerwise` to `false`.", (("lmcache.use_layerwise", "false"),), "safe",
               (Edit("LMCache YAML", "use_layerwise: true", "use_layerwise: false"),)),
        Advice("Serve without LMCache.", (("--kv-transfer-config", "{}"), ("VLLM_X", "a b")), "disruptive"),
    ),
    occurrences=3,
    processes=("Worker_TP0", "Worker_TP1"),
    first_seen="12-01 02:00:00",
    last_seen="12-01 02:00:05",
    source="server.log",
    first_line=210,
    last_line=262,
    evidence=tuple(f"(Worker_TP0 pid=4242) ERROR line {number}" for number in range(12)),
    earlier=(Earlier("ValueError", "No available memory for the cache blocks.", None, "server.log", 17),),
    reason="The log shows an MLA model.",
    clues=(ClueSeen("mla", 12, "Using MLA backend", (("backend", "FLASHMLA"),)),),
)

UNMATCHED = MATCHED._replace(
    card=None, title="AssertionError", severity="error", confidence="none", outcome="died", advice=(), fields=(),
    root=Root("AssertionError", "expected 16 heads, it's 12", "Worker_TP0", None), earlier=(), reason=None, clues=(),
)  # fmt: skip

HIDDEN = UNMATCHED._replace(
    title="The engine core failed", cause_visible=False, root=None, raised_at=None, occurrences=1, processes=()
)

REQUEST = UNMATCHED._replace(
    severity="info", scope="request", outcome="request_failed", occurrences=12,
    root=Root("ValueError", "max_tokens must be at least 1, got 0.", "APIServer", 1),
)  # fmt: skip

SUMMARY = Summary(
    sources=2, lines=12_345, bytes=1_234_567, undecodable_lines=2, truncated_lines=1, records=210, tracebacks=4,
    dropped_tracebacks=5, skipped=tuple((f"/logs/{number}.gz", "not gzip") for number in range(12)),
    by_severity=(("critical", 1), ("info", 2)), by_card=((CARD.id, 1),), seconds=0.4213,
)  # fmt: skip


def cards(card_id: str) -> Card:
    """Give the card of an id, as the pack does."""
    return {CARD.id: CARD}[card_id]


def with_message(message: str) -> Incident:
    """Make an incident without a card whose root says `message`, and so does all that quotes the log."""
    return UNMATCHED._replace(
        root=Root("ValueError", message, message[:40], 7),
        title=message[:200],
        symptoms=(Symptom("RuntimeError", message, "APIServer"),),
        evidence=(message,),
        source=message[:30],
        earlier=(Earlier("ValueError", message, None, "server.log", 3),),
    )
