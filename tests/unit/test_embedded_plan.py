"""The embedded engine without an engine: what is derived, shared, named and refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

import pytest

from hmars.errors import ConfigError, MissingExtraError
from hmars.llm.embedded import EmbeddedEngines
from hmars.llm.embedded.machine import Machine
from hmars.llm.embedded.plan import EnginePlan, need_tokens, plan_engine
from hmars.llm.embedded.server import EmbeddedServer
from hmars.llm.embedded.shape import ModelShape, model_shape
from hmars.settings import EndpointSettings, Profile, load_profile
from hmars.tokens import load_tokenizer
from hmars.tokens.hub import model_path
from tests.unit.gguf_files import write_gguf

SMALL = Machine(cpus=2, memory_mb=8192)
SHAPE = ModelShape("qwen2", context_tokens=32768, kv_bytes_per_token=28672)


def settings(**more: object) -> EndpointSettings:
    return EndpointSettings.model_validate({"engine": "embedded", **more})


def test_what_the_profile_leaves_open_follows_from_machine_and_need() -> None:
    plan = plan_engine(settings(), 5000, SHAPE, SMALL)
    assert plan == EnginePlan(
        threads=2, slots=2, context_tokens=5120, cache_mb=4096, kv_bytes_per_token=28672
    )
    assert plan.cache_tokens == 4096 * 2**20 // 28672


def test_what_the_profile_says_is_kept() -> None:
    plan = plan_engine(settings(threads=1, slots=3, cache_mb=0), 5000, SHAPE, SMALL)
    assert (plan.threads, plan.slots, plan.cache_mb, plan.cache_tokens) == (1, 3, 0, 0)


def test_slots_give_way_where_memory_is_short_and_context_to_what_was_trained() -> None:
    tight = plan_engine(settings(), 32000, SHAPE, Machine(cpus=16, memory_mb=2048))
    assert (tight.slots, tight.threads) == (1, 8)
    short = plan_engine(settings(), 32000, ModelShape("llama", 8192, 1000), SMALL)
    assert short.context_tokens == 8192


def test_the_context_holds_the_longest_prompt_and_reply_of_its_roles() -> None:
    profile = load_profile("embedded", ["model=m.gguf"])
    region = profile.partition.region_tokens
    assert need_tokens(profile, frozenset({"local"})) > region + profile.roles["card"].max_tokens


def test_the_size_of_a_model_is_read_from_its_header(tmp_path: Path) -> None:
    path = write_gguf(
        tmp_path / "m.gguf",
        {
            "general.architecture": "qwen2",
            "qwen2.context_length": 32768,
            "qwen2.block_count": 28,
            "qwen2.embedding_length": 1536,
            "qwen2.attention.head_count": 12,
            "qwen2.attention.head_count_kv": 2,
        },
    )
    assert model_shape(path) == SHAPE


class StandIn:
    """In the place of an engine: remembers whether it is running."""

    def __init__(self, path: Path, plan: EnginePlan) -> None:
        self.path, self.plan, self.key = path, plan, "secret"
        self.base_url = f"http://127.0.0.1:1/{path.stem}/v1"
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True


def start(path: Path, plan: EnginePlan) -> EmbeddedServer:
    return cast(EmbeddedServer, StandIn(path, plan))


def two_models(tmp_path: Path) -> Profile:
    for name in ("a", "b"):
        write_gguf(tmp_path / f"{name}.gguf", {"general.architecture": "x"})
    files = {"one": "a", "two": "b", "three": "a"}
    return Profile.model_validate(
        {
            "endpoints": {
                name: {"engine": "embedded", "model_file": str(tmp_path / f"{file}.gguf")}
                for name, file in files.items()
            },
            "roles": {
                role: {"endpoint": name}
                for role, name in zip(("card", "select", "answer"), files, strict=True)
            },
        }
    )


def test_one_engine_is_started_for_each_file_and_shared_by_its_endpoints(tmp_path: Path) -> None:
    engines = EmbeddedEngines(two_models(tmp_path), machine=SMALL, start=start)
    served = engines.serve()
    assert len(engines.servers) == 2
    urls = {name: endpoint.base_url for name, endpoint in served.endpoints.items()}
    assert urls["one"] == urls["three"] != urls["two"]
    assert {endpoint.engine for endpoint in served.endpoints.values()} == {"http"}
    assert served.endpoints["one"].in_flight == 2
    assert served.roles["card"].model == "a"
    running = [cast(StandIn, server) for server in engines.servers.values()]
    engines.close()
    assert all(server.stopped for server in running)
    assert not engines.servers


def test_an_engine_that_does_not_start_leaves_none_running(tmp_path: Path) -> None:
    started: list[StandIn] = []

    def second_breaks(path: Path, plan: EnginePlan) -> EmbeddedServer:
        if started:
            raise ConfigError("it is damaged.")
        started.append(StandIn(path, plan))
        return cast(EmbeddedServer, started[0])

    engines = EmbeddedEngines(two_models(tmp_path), machine=SMALL, start=second_breaks)
    with pytest.raises(ConfigError, match="damaged"):
        engines.serve()
    assert started[0].stopped


def test_a_profile_without_embedded_endpoints_is_left_alone() -> None:
    profile = load_profile("vllm")
    assert EmbeddedEngines(profile, start=start).serve() is profile


def test_one_override_sets_file_name_and_tokenizer(tmp_path: Path) -> None:
    profile = load_profile("embedded", [f"model={tmp_path}/tiny-q4.gguf"])
    assert profile.endpoints["local"].model_file == f"{tmp_path}/tiny-q4.gguf"
    assert {role.model for role in profile.roles.values()} == {"tiny-q4"}
    assert profile.tokenizer.name == f"{tmp_path}/tiny-q4.gguf"
    named = load_profile("embedded", ["model=hf:o/r:f.gguf", 'tokenizer.name="words"'])
    assert named.tokenizer.name == "words"
    assert named.roles["card"].model == "f"


def test_a_profile_that_is_served_is_one_that_could_be_loaded(tmp_path: Path) -> None:
    write_gguf(tmp_path / "a.gguf", {"general.architecture": "x"})
    engines = EmbeddedEngines(load_profile("embedded", [f"model={tmp_path}/a.gguf"]), start=start)
    served = engines.serve()
    assert Profile.model_validate(served.model_dump()).endpoints["local"].engine == "http"


def test_a_model_where_nothing_is_embedded_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no endpoint of this profile is embedded"):
        load_profile("vllm", ["model=x.gguf"])


def test_without_a_model_the_way_to_name_one_is_told() -> None:
    with pytest.raises(ConfigError, match="--set model=PATH"):
        EmbeddedEngines(load_profile("embedded"), start=start).serve()


def test_a_file_that_is_not_there_and_a_hub_name_that_is_none_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="There is no model file"):
        model_path(str(tmp_path / "none.gguf"))
    with pytest.raises(ConfigError, match="must read hf:OWNER/REPOSITORY"):
        model_path("hf:only-a-name")


def test_a_hub_that_cannot_be_reached_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object) -> str:
        raise OSError("no route to host")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", unreachable)
    with pytest.raises(ConfigError, match="cannot be downloaded"):
        load_tokenizer("hf:owner/repository:file.gguf")


def test_without_the_library_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    plan = plan_engine(settings(), 512, SHAPE, SMALL)
    with pytest.raises(MissingExtraError, match=r"hmars\[embedded\]"):
        EmbeddedServer(tmp_path / "m.gguf", plan)
