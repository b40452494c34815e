# syntax=docker/dockerfile:1

FROM rust:1.95-slim-bookworm AS build
WORKDIR /build
COPY . .
# The caches live outside of the image, so that a change of ours does not compile the dependencies again.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/build/target \
    cargo build --release --locked --features full --bin orbit && cp target/release/orbit /orbit

FROM debian:bookworm-slim
# Certificates, because object storage is reached over TLS.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /orbit /usr/local/bin/orbit
# By number, so that an orchestrator can see that it is not root.
USER 10001:10001
WORKDIR /tmp
EXPOSE 9132 9133
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["orbit", "healthcheck"]
ENTRYPOINT ["orbit"]
CMD ["serve"]
