.DEFAULT_GOAL := help
.PHONY: help setup demo test lint fmt check load clean

help: ## List the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

setup: ## Install what is missing: a Redis and a MongoDB server (make demo and make test do this first)
	@scripts/setup

demo: setup ## Run a whole flash sale on this machine, then leave the service up until Ctrl-C
	cargo run --release --bin orbit -- demo

test: setup ## Run every test
	cargo test

lint: ## Check the formatting, the code and the documentation; nothing may warn
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	cargo clippy -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --features full

fmt: ## Format the code
	cargo fmt

check: ## Compile everything without building it, the quickest answer while editing
	cargo check --all-targets

load: setup ## Run the load generator; what it should do goes in ARGS, e.g. make load ARGS=--help
	cargo run --release --bin orbit-load -- $(ARGS)

clean: ## Remove what was built, and the data of demos
	cargo clean
	rm -rf .orbit
