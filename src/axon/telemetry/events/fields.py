"""The fields that a log line may have: the type of each and its meaning. Knows no event."""

from dataclasses import dataclass
from typing import Literal

Type = Literal["boolean", "date", "double", "keyword", "long", "object", "text"]
"""A field type of OpenSearch: ``keyword`` is a name or an id and is matched whole, ``text`` is searched by its words,
``object`` is kept and not searched."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of log lines, with one type wherever it occurs."""

    name: str
    type: Type
    says: str


COMMON = (
    Field("ts", "date", "UTC time, ISO 8601"),
    Field("level", "keyword", "`debug`, `info`, `warning` or `error`"),
    Field("msg", "text", "a sentence for people: the event's, or a library's own message"),
    Field("event", "keyword", "the event's name in this table; absent on lines of libraries"),
    Field(
        "service",
        "keyword",
        "`axon` for `axon serve`; else with the role, as in `axon-gateway`, `axon-worker`, `axon-engine`",
    ),
    Field("trace_id", "keyword", "W3C trace id of the request"),
    Field("span_id", "keyword", "W3C span id of the step of the request that wrote the line"),
    Field("request_id", "keyword", "id of the request, which the response has as `x-request-id`"),
    Field("session_id", "keyword", "conversation of the turn"),
    Field("tenant_id", "keyword", "tenant that the line is about, or whose key asked"),
    Field("attempt", "long", "which attempt at the turn wrote the line, from 1 on"),
    Field("turn", "keyword", "id of the turn, which is the answer's id and the stream's"),
    Field("logger", "keyword", "the logger of a line that a library wrote"),
    Field("exception", "text", "traceback; messages that may quote users' text are left out"),
    Field("extra", "object", "fields of a library's line"),
)
"""Fields that any line may have, in the order in which they are written."""

_OF_EVENTS = (
    Field("action", "keyword", "what the launcher was asked to do"),
    Field("after_s", "double", "seconds after which it was done"),
    Field("adapter", "keyword", "adapter in the registry, as model:name"),
    Field("alias", "keyword", "alias in the registry"),
    Field("batch", "keyword", "id of the batch"),
    Field("by_age", "boolean", "whether the version's age decided it"),
    Field("by_key", "keyword", "id of the key that asked for the change"),
    Field("by_tenant", "keyword", "tenant of that key"),
    Field("cause", "text", "why it came to this"),
    Field("changes", "object", "settings that were changed, with their new values"),
    Field("client", "keyword", "address of the client"),
    Field("code", "keyword", "code of the error, as in API responses"),
    Field("control", "keyword", "name of the control process"),
    Field("count", "long", "how many"),
    Field("crowd", "keyword", "what is led: each job of control has a leader"),
    Field("deaths", "long", "how often the process has died"),
    Field("deployment", "keyword", "deployment in the registry"),
    Field("digest", "keyword", "digest of the files of a model or an adapter"),
    Field("error", "text", "what failed"),
    Field("event_missed", "keyword", "event of the change that was outrun"),
    Field("exit_code", "long", "exit code of the process; negative for a signal"),
    Field("exit_codes", "long", "exit codes of the processes"),
    Field("facts", "object", "what the start screen shows of the process"),
    Field("fields", "keyword", "names of the fields that were changed"),
    Field("group", "keyword", "replicas of one version in one pool"),
    Field("handed_over", "long", "turns that were given to other workers"),
    Field("hint", "text", "what to do about it"),
    Field("holder", "keyword", "name of the process that holds the slot"),
    Field("holds", "boolean", "whether the lease still holds"),
    Field("jobs", "long", "number of jobs"),
    Field("key_file", "keyword", "file with the development key"),
    Field("key_id", "keyword", "id of an API key, never the key"),
    Field("lane", "keyword", "lane of the queue"),
    Field("lanes", "long", "number of lanes"),
    Field("left", "long", "turns that are left here"),
    Field("left_s", "double", "seconds until it is given up"),
    Field("limits", "object", "limits that were set"),
    Field("method", "keyword", "HTTP method, or method of a port"),
    Field("model", "keyword", "model or deployment by its name"),
    Field("models", "keyword", "names of the models"),
    Field("moves", "boolean", "whether sessions of the version are moved"),
    Field("ms", "double", "milliseconds from the request to the end of its response"),
    Field("next", "text", "what happens next"),
    Field("not_logged", "long", "lines of this event that were held back before this one"),
    Field("num_bytes", "long", "size in bytes"),
    Field("num_keys", "long", "number of API keys"),
    Field("num_records", "long", "number of records"),
    Field("num_requests", "long", "requests that failed so since the last line"),
    Field("num_versions", "long", "number of versions"),
    Field("overlap_s", "double", "seconds for which the old key is still good"),
    Field("owner", "keyword", "worker that owned the turn"),
    Field("path", "keyword", "path of a request that matches no route, cut and escaped"),
    Field("pid", "long", "process id"),
    Field("plan", "keyword", "plan of tenants"),
    Field("previous", "keyword", "id of the key that was replaced"),
    Field("price", "keyword", "id of the price"),
    Field("problem", "text", "what failed, as the response says it"),
    Field("process", "keyword", "name of the process that is profiled"),
    Field("profile", "keyword", "what is recorded: `cpu`, `memory` or `steps`"),
    Field("reason", "text", "why it was done"),
    Field("record_s", "double", "seconds for which it is recorded"),
    Field("rendezvous", "keyword", "address at which the ranks of a group meet"),
    Field("replica", "keyword", "name of the replica"),
    Field("requests", "long", "requests that are being answered"),
    Field("restarts", "long", "how often it was started again"),
    Field("retry_s", "double", "seconds until the next try"),
    Field("revision", "long", "revision of the registry that is held"),
    Field("role", "keyword", "role of the process"),
    Field("route", "keyword", "route of the request, without its values"),
    Field("running", "long", "turns that were running"),
    Field("scopes", "keyword", "scopes of the key"),
    Field("share", "double", "fraction of new sessions on the new version"),
    Field("silent_s", "double", "seconds since the last sign of life"),
    Field("source", "keyword", "where the model files come from"),
    Field("spans", "long", "number of spans"),
    Field("stage", "keyword", "stage of the start"),
    Field("state", "keyword", "state that was reached"),
    Field("status", "long", "HTTP status; 499 if the client left before the response began"),
    Field("step", "keyword", "step that was interrupted"),
    Field("still_s", "double", "seconds for which the event loop has not moved"),
    Field("subject", "keyword", "the issuer's own name of whoever signed in by OpenID Connect"),
    Field("tenant", "keyword", "tenant that was made or changed"),
    Field("term", "long", "term of the leader"),
    Field("text_digest", "keyword", "digest of tokenizer and chat template"),
    Field("turns", "long", "number of turns"),
    Field("url", "keyword", "address at which it is reached"),
    Field("metrics_url", "keyword", "address of the metrics"),
    Field("version", "keyword", "version of a model"),
    Field("way", "keyword", "how somebody signed in: `key`, `code` or `oidc`"),
    Field("why", "text", "why it cannot be run here"),
    Field("work", "text", "what the process still works on"),
    Field("worker", "keyword", "name of the worker"),
    Field("wrong", "text", "how an answer differs from the golden one; absent if none does"),
)

FIELDS: dict[str, Field] = {each.name: each for each in (*COMMON, *_OF_EVENTS)}
"""Every field by its name."""
