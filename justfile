# Short names for the commands of this repository. `./test` is what CI runs; nothing here is needed for it.

# List the recipes.
default:
    @just --list

# Everything that CI checks.
test:
    ./test

# The main job on the embedded store: four workers, one of them killed.
demo *args:
    cargo run --release -- demo {{args}}

# The conformance suite on every store, as a table of subjects.
conformance *args:
    cargo run -p taskbus --features conformance --example conformance -- {{args}}

# The tests with random cases, with new ones and many more of them. A seed that fails is printed to be written down.
random cases="20000":
    PROPTEST_RNG_SEED=$(od -An -N4 -tu4 /dev/urandom | tr -d " ") PROPTEST_CASES={{cases}} cargo nextest run -p taskbus-core --no-capture

# Bytes that mean harm, many more of them and new ones: what fails says which line to add to its file of inputs.
fuzz times="100":
    TASKBUS_SEED=$(od -An -N4 -tu4 /dev/urandom | tr -d " ") TASKBUS_TEST_TIMES={{times}} cargo nextest run -E 'binary(fuzz) or test(fuzz_tests)' --no-capture

# Agents, clock and faults that one seed decides, on so many times as many seeds; a seed that fails is printed.
simulate times="100":
    TASKBUS_TEST_TIMES={{times}} cargo nextest run --release -p taskbus -E 'binary(simulation)' --no-capture

# The parts that are nothing but locks, under so many times as many schedules; and restarts on every store.
races times="100":
    TASKBUS_TEST_TIMES={{times}} cargo nextest run --release -p taskbus -E 'binary(races)' --no-capture
    TASKBUS_TEST_TIMES=$(({{times}} / 10 + 1)) cargo nextest run --release -p taskbus --features conformance -E 'binary(restarts)'

# Eight processes on one sidecar and one Claude Code directory, some of them killed; and without locks, which must lose.
storm:
    cargo nextest run -p taskbus -E 'test(/eight_processes/)' --no-capture

# Twenty idle servers for a minute: their processor time and memory, and that nobody writes.
idle seconds="60":
    IDLE_SECONDS={{seconds}} cargo nextest run --release -p taskbus-cli -E 'test(/idle_servers/)' --no-capture

# A third party's store, run through the suite.
custom-store:
    cargo run -p taskbus --features conformance --example custom_store

# Real MCP clients: the Inspector, the TypeScript SDK, and Claude Code, Codex and Gemini CLI against a scripted model.
clients *args:
    tests/clients/run {{args}}

# What a call costs, as ratios to a raw SQLite loop of the same run.
bench *args:
    cargo run --release -- bench {{args}}

# taskbus beside other task lists for agents, installed into a temporary directory: the same work, turn by turn.
peers *args:
    cargo build --release
    bench/peers/run {{args}}

# The instructions of four calls, counted by valgrind, against the figures that are checked in.
instructions *args:
    cargo build --release
    bench/instructions/run {{args}}

# Whole processes: commands, servers, many of both at once, each against something of the same run. A minute of it is idle.
processes *args:
    cargo build --release
    cargo build --release -p taskbus-cli --examples
    bench/processes/run {{args}}

# The library's documentation, opened in a browser.
docs:
    cargo doc --no-deps --workspace --open

# Half an hour of kills, freezes and races on a store of its own; then the faults, the file stores, the seeds and the fed
# bytes, many times over.
torture-long *args:
    cargo run --release -- torture --minutes 30 {{args}}
    TASKBUS_TEST_TIMES=20 cargo nextest run --release -p taskbus -E 'binary(faults)' --no-capture
    cargo nextest run --release -p taskbus -E 'test(/eight_processes/)'
    TASKBUS_TEST_TIMES=20 cargo nextest run --release -p taskbus -E 'binary(simulation)'
    TASKBUS_TEST_TIMES=10 cargo nextest run --release -E 'binary(fuzz) or test(fuzz_tests)'

# Real power cuts: a file system of its own that is shut down under commands that work. As root, on Linux.
power *args:
    cargo build --release
    tests/power.py target/release/taskbus {{args}}

# Changes the core in one place after the other and sees whether a test of the core notices: cargo-mutants, hours for
# all of it, two minutes for one of two hundred parts.
mutants shard="0/200":
    PROPTEST_RNG_SEED=1 PROPTEST_CASES=80 CARGO_PROFILE_DEV_DEBUG=0 cargo mutants -p taskbus-core --shard {{shard}} \
        --sharding round-robin --timeout 120 --cargo-arg=--config=profile.dev.package.taskbus-core.opt-level=0 -- \
        --lib --test board --test drop_in --test kin --test limits --test lineage --test receive --test refusals \
        --test rules --test steps --test words

# Licences, bans and sources of the dependency tree, and proof that the gate closes.
deny:
    tests/deny

# What the binary is made of, as a CycloneDX document in target/.
sbom:
    tests/sbom
