"""The wheels of the job by the names that an index gives them for Glue 6.0, without a download."""

from deploy.locks import locked

OWN_WHEEL = "ndjson_compactor-0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl"

TAGS = {
    "aws-msk-iam-sasl-signer-python": "py2.py3-none-any",
    "blake3": "cp313-cp313-manylinux_2_17_x86_64.manylinux2014_x86_64",
    "charset-normalizer": "cp313-cp313-manylinux2014_x86_64.manylinux_2_17_x86_64.manylinux_2_28_x86_64",
    "confluent-kafka": "cp313-cp313-manylinux_2_28_x86_64",
    "cramjam": "cp313-cp313-manylinux_2_28_x86_64",
    "mmh3": "cp313-cp313-manylinux1_x86_64.manylinux_2_28_x86_64.manylinux_2_5_x86_64",
    "orjson": "cp313-cp313-manylinux_2_17_x86_64.manylinux2014_x86_64",
    "pyarrow": "cp313-cp313-manylinux_2_28_x86_64",
    "pydantic-core": "cp313-cp313-manylinux2014_x86_64.manylinux_2_17_x86_64",
    "pyiceberg": "cp313-cp313-manylinux2014_x86_64.manylinux_2_17_x86_64.manylinux_2_28_x86_64",
    "pyroaring": "cp313-cp313-manylinux_2_24_x86_64.manylinux_2_28_x86_64",
    "python-dateutil": "py2.py3-none-any",
    "six": "py2.py3-none-any",
    "sqlalchemy": "cp313-cp313-manylinux2014_x86_64.manylinux_2_17_x86_64.manylinux_2_28_x86_64",
    "zlib-ng": "cp313-cp313-manylinux2014_x86_64.manylinux_2_17_x86_64.manylinux_2_28_x86_64",
    "zstandard": "cp313-cp313-manylinux2014_x86_64.manylinux_2_17_x86_64",
}
"""The tags of the packages whose wheels are not `py3-none-any`."""


def wheel_names() -> list[str]:
    """The names of the job's wheels: the compactor's own, and those of `locks/job.txt`."""
    others = (
        f"{name.replace('-', '_')}-{version}-{TAGS.get(name, 'py3-none-any')}.whl"
        for name, version in locked("job").items()
    )
    return [OWN_WHEEL, *others]
