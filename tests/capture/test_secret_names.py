"""Which variables look like secrets."""

from __future__ import annotations

import pytest

from hyperpod_jlab.capture.secrets import is_secret_file, looks_secret, secret_name_findings


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "PASSWORD",
        "DB_PASSWD",
        "WANDB_API_KEY",
        "OPENAI_APIKEY",
        "GITHUB_PAT",
        "myApiKey",
        "client_secret",
        "SSH_PRIVATE_KEY",
    ],
)
def test_secret(name: str):
    assert looks_secret(name, "value")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOKENIZERS_PARALLELISM", "false"),
        ("MAX_TOKENS", "5"),
        ("HF_TOKEN_PATH", "x"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/etc/creds.json"),
        ("KEY", "x"),
        ("PATH", "/bin"),
        ("INDEX_URL", "https://me:${PASSWORD}@index.example/simple"),
        ("MONKEY", "x"),
        ("PWD", "/x"),
        ("SORT_KEY", "x"),
    ],
)
def test_not_secret(name: str, value: str):
    assert not looks_secret(name, value)


@pytest.mark.parametrize(
    "value", ["hf_" + "a" * 30, "AKIA" + "A" * 16, "ghp_" + "b" * 36, "https://me:pw@index.example/simple"]
)
def test_secret_by_its_value(value: str):
    assert looks_secret("X", value)


def test_values_are_never_told():
    (found,) = secret_name_findings({"HF_TOKEN": "hunter2", "EMPTY_TOKEN": "", "A": "b"})
    assert "hunter2" not in found.model_dump_json()
    assert found.field == "environment.variables"


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        "a/.ENV.prod",
        "x.pem",
        ".ssh/config",
        "sub/.aws/config",
        "id_rsa",
        ".huggingface/token",
        "service-account-x.json",
    ],
)
def test_secret_files(path: str):
    assert is_secret_file(path)


@pytest.mark.parametrize(
    "path", [".env.example", "env.py", "pem.txt", "id_rsa.pub", "aws/config", "tokenizer.json", "keys.py"]
)
def test_harmless_files(path: str):
    assert not is_secret_file(path)
