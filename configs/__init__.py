"""Profiles shipped with hmars, one TOML file each."""
