#!/bin/sh
# All of it with nothing but curl: list, ask, stream, cut the stream and resume it, keep a conversation.
#
#   AXON_API_KEY=axk_… sh examples/curl.sh
set -eu
: "${AXON_API_KEY:?Set it to a key; .venv/bin/axon keys create makes one.}"
url=${AXON_URL:-http://127.0.0.1:8000}/v1

ask() {
    curl --silent --show-error --fail --no-buffer --max-time 120 \
        --header "Authorization: Bearer $AXON_API_KEY" --header "Content-Type: application/json" "$@"
}

model=$(ask "$url/models" | sed 's/.*"data":\[{"id":"\([^"]*\)".*/\1/')
echo "== $model answers"
ask "$url/chat/completions" --data "{\"model\": \"$model\", \"temperature\": 0, \"max_tokens\": 60,
    \"messages\": [{\"role\": \"user\", \"content\": \"What is the capital of France?\"}]}"

echo
echo "== the same as a stream, read up to its fourth event and dropped"
ask "$url/completions" --data "{\"model\": \"$model\", \"temperature\": 0, \"max_tokens\": 40, \"stream\": true,
    \"prompt\": \"The capital of France is known for its museums\"}" 2>/dev/null | sed -n '1,7p' >"${TMPDIR:-/tmp}/axon-first.$$" || true
cat "${TMPDIR:-/tmp}/axon-first.$$"
last=$(grep '^data: {' "${TMPDIR:-/tmp}/axon-first.$$" | tail -n 1)
rm -f "${TMPDIR:-/tmp}/axon-first.$$"
stream=$(echo "$last" | sed 's/.*"id":"\([^"]*\)".*/\1/')
seq=$(echo "$last" | sed 's/.*"seq":\([0-9]*\).*/\1/')

echo "== and picked up after token $seq"
ask "$url/streams/$stream?after=$seq" | sed -n '/"end":true/p;/DONE/p'

echo "== a conversation that the server keeps"
first=$(ask "$url/responses" --data "{\"model\": \"$model\", \"temperature\": 0, \"max_output_tokens\": 60,
    \"input\": \"What is the capital of France?\"}" |
    sed 's/^{"id":"\([^"]*\)".*/\1/')
ask "$url/responses" --data "{\"model\": \"$model\", \"temperature\": 0, \"max_output_tokens\": 60,
    \"input\": \"Which river flows through it?\",
    \"previous_response_id\": \"$first\"}"
echo
