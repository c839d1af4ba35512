"""Model files by path, or by name from a hub: `hf:OWNER/REPOSITORY:FILE`."""

from __future__ import annotations

from pathlib import Path

from hmars.errors import ConfigError

HUB = "hf:"


def model_path(name: str) -> Path:
    """Where the file is; one of a hub is downloaded once and kept by huggingface_hub.

    Raises:
        ConfigError: there is no such file, or the hub cannot be reached or does not have it.
    """
    if name.startswith(HUB):
        return _downloaded(name)
    path = Path(name).expanduser()
    if not path.is_file():
        raise ConfigError(
            f"There is no model file {name}: name a GGUF file, or one of a hub as "
            "hf:OWNER/REPOSITORY:FILE.gguf."
        )
    return path.resolve()


def _downloaded(name: str) -> Path:
    repository, separator, file = name.removeprefix(HUB).partition(":")
    if not separator or not file or repository.count("/") != 1:
        raise ConfigError(f"The model '{name}' must read hf:OWNER/REPOSITORY:FILE.gguf.")
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        return Path(str(huggingface_hub.hf_hub_download(repository, file)))
    except (HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ConfigError(
            f"The model '{name}' cannot be downloaded ({reason}): check the name, or copy the file "
            "here and give its path."
        ) from None
