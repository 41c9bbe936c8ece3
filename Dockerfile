# The compactor for folders and S3, with the native engine and without Spark. `make wheel` first, then `make image`, then:
#   docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/data" ndjson-compactor compact raw rows
FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b

# locks/job.txt is for Python 3.13 on Linux, with boto3. The folders of the build leave nothing in the image.
RUN --mount=type=bind,source=locks,target=/build/locks --mount=type=bind,source=dist,target=/build/dist \
    pip install --no-cache-dir --no-compile --no-deps --require-hashes --requirement /build/locks/job.txt \
    && pip install --no-cache-dir --no-compile --no-deps /build/dist/ndjson_compactor-*-abi3-manylinux*_"$(uname -m)".whl \
    && python -m compileall -q /usr/local/lib/python3.13/site-packages

USER 10001:10001
WORKDIR /data
# Scratch for a root that is read-only: a volume keeps the rights that the folder has here.
VOLUME ["/tmp"]
ENTRYPOINT ["compactor"]
