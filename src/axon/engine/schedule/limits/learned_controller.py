"""Sets chunk and draft sizes on a CPU from a learned cost model of steps. Reads no clock.

The time of a step is the time of its streams alone (a fixed part, a part for each row, a part for each token that the
rows attend to) plus the time of its prompt tokens (a part for each token, a part for each token that they attend to).
The chunk is as large as the allowed slowdown of the streams and the allowed time between two of their tokens permit.
Where the streams have drafts, their time is that with drafts: otherwise drafts would lengthen the steps and prompts,
with the same chunk in each, would go on more slowly.
While streams stand still because the engine or the worker that ran them is gone, the slowdown is not bounded, only the
time of a step: what they compute again costs the other streams as much time in large chunks as in small ones, and in
large ones they go on sooner.

Each of the two is learned only from steps that show it. Steps without prompt tokens teach the time of the streams.
While a prompt is prefilled, some steps therefore go without it (probing): otherwise nothing would tell the two times
apart, and an error of one would feed the other. What a step with prompt tokens takes beyond its streams is the time of
the prompt tokens. A step without streams teaches nothing: prompt tokens by themselves cost less than they add to a step
of streams.

Neither chunks nor drafts change any token, so what is learned may differ from run to run.
"""

from math import inf

from axon.engine.batch import Batch
from axon.engine.drafts import NOTHING_DRAFTED, Drafted
from axon.engine.schedule.limits.controller import NO_DRAFTS, Forecast, Outlook, StepLimits
from axon.engine.schedule.limits.cost_model import CostModel
from axon.engine.schedule.limits.draft_choice import DraftCosts
from axon.engine.schedule.limits.draft_ledger import DraftLedger
from axon.engine.schedule.limits.lookup_account import LookupAccount
from axon.engine.schedule.limits.row_factors import RowFactors

_FIRST_TOKENS = 8  # the chunk before any prompt was measured
_FEWEST_TOKENS = 1  # a prompt advances in every step that is not a probe
_AIM = 0.95  # of the time that prompts may take: steps scatter around their prediction
_CATCH_UP_S = 0.25  # time of a step in which interrupted streams are computed again: they have stood still for longer
_LEAST_SPARE = 0.1  # fraction of the streams' own time left to prompts where the streams alone exceed their time
_PROBE_EVERY = 16  # steps with prompt tokens between two probes
_PROBE_APART = 4  # the same after a step, be it a probe, that took far more or less time than predicted
_SURPRISE = 1.35  # factor between the measured and the predicted time of such a step
_PLAIN_EVERY = 64  # steps with drafts before one without, which shows what drafts add to the others
_SHARE_GAIN = 0.2  # weight of a step in the average of what drafts add to the time of the streams
_MOST_SHARE = 1.0  # what drafts count for at most there: streams without any wait for the whole step too
_MOST_LOSS = 2.0  # what the drafts of a step are charged at most, in times of the step without them
_FIRST_PRICE, _LEAST_PRICE = 0.3, 0.05  # of a draft token: before anything is known, and the lower bound
# Ratios of the costs before anything is measured: [fixed, row, attended], and [token, attended] of a prompt.
_FIRST_STREAM_COSTS = (1.0, 0.2, 1 / 4096)
_FIRST_PROMPT_COSTS = (1.0, 1 / 2048)


class LearnedController:
    """A cost model of steps and the limits that follow from it."""

    def __init__(
        self,
        *,
        max_prefill_tokens: int,
        max_slowdown: float,
        slo_s: float = inf,
        drafts: bool = False,
        draft_tokens: int = 0,
        draft_streams: float = inf,
    ) -> None:
        """``draft_tokens``: most tokens that the draft model drafts for a stream in a step; 0 without one.
        ``draft_streams``: most streams that it drafts beside."""
        self._most = max_prefill_tokens
        self._spare = max_slowdown - 1
        self._slo_s = slo_s
        self._drafts = drafts
        self._draft_streams = draft_streams
        self._ledger = DraftLedger(most=draft_tokens) if drafts and draft_tokens else None
        self._factors = RowFactors()
        self._account = LookupAccount()
        self._drafts_share = 0.0
        """Time of the drafts of recent steps over that of their streams alone: an exponential moving average."""
        self._num_drafted = 0
        """Steps with drafts since the last step that had neither drafts nor prompt tokens."""
        self._limits = StepLimits(max_prefill_tokens=max_prefill_tokens)
        # Delays lengthen steps and nothing shortens them, so the streams' time is estimated from below.
        self._streams = CostModel(_FIRST_STREAM_COSTS, gain_up=0.2, gain_down=0.5)
        self._prompts = CostModel(_FIRST_PROMPT_COSTS, gain_up=0.2, gain_down=0.2)
        self._had_many = False
        """Whether there were too many streams for drafts in the last step that had any."""
        self._last_rows = 0.0
        """Rows of the last step without prompt tokens."""
        self._num_unprobed = 0
        """Steps with prompt tokens since the last one without."""
        self._num_surprises = 0
        """How many of these, and of that one, took far more or less time than predicted."""
        self._is_probing = False
        """Whether the last limits were those of a probe that was not observed yet."""
        self._withheld: tuple[tuple[float, ...], float] | None = None
        """The prompt tokens and the time of a surprising step that the next probe is to explain."""

    def limits(self, forecast: Forecast) -> StepLimits:
        """The chunk and the draft price for the work that stands before the next step."""
        has_prompts = forecast.has_prompts
        if self._drafts or has_prompts:
            outlook = forecast.outlook()
            num_tokens = self._most
            if has_prompts and outlook.num_streams:
                num_tokens = 0 if self._begins_probe() else self.num_prefill_tokens(outlook)
            price, costs = NO_DRAFTS, None
            is_plain_due = self._num_drafted >= _PLAIN_EVERY and not (has_prompts and num_tokens)
            if self._drafts and not is_plain_due:
                price = self.draft_price(outlook)
                costs = self._draft_costs(outlook.num_streams, outlook.num_attended)
            self._limits = StepLimits(max_prefill_tokens=num_tokens, draft_price=price, draft_costs=costs)
        return self._limits

    def num_prefill_tokens(self, outlook: Outlook) -> int:
        """Number of prompt tokens that fit into a step with these streams."""
        if not self._prompts.num_updates:
            return min(_FIRST_TOKENS, self._most)
        fixed_s, row_s, attended_s = self._streams.costs
        alone_s = fixed_s + row_s * outlook.num_streams + attended_s * outlook.num_attended
        token_s, prompt_attended_s = self._prompts.costs
        each_s = token_s + prompt_attended_s * outlook.prompt_at
        alone_s *= 1 + self._drafts_share  # drafts are paid by the tokens that they bring, not by prompts that wait
        spare_s = min(self._spare * alone_s, max(self._slo_s - alone_s, _LEAST_SPARE * alone_s))
        num_tokens = min(max(int(_AIM * spare_s / each_s), _FEWEST_TOKENS), self._most)
        catch_up_s = max(min(_CATCH_UP_S, self._slo_s) - alone_s, 0.0)
        return max(num_tokens, min(int(_AIM * catch_up_s / each_s), outlook.num_interrupted))

    def draft_price(self, outlook: Outlook) -> float:
        """Cost of one more row in the step, as a fraction of what the step yields: one token for each stream."""
        num_streams = outlook.num_streams
        if not num_streams or not self._account.can_pay():
            return NO_DRAFTS
        if not self._streams.num_updates:
            return _FIRST_PRICE if num_streams == 1 else NO_DRAFTS
        fixed_s, row_s, attended_s = self._streams.costs
        rows_s = row_s * num_streams + attended_s * outlook.num_attended
        return max(self._factors.factor(num_streams) * rows_s / (fixed_s + rows_s), _LEAST_PRICE)

    def observe(self, batch: Batch, *, step_s: float, compute_s: float, drafted: Drafted = NOTHING_DRAFTED) -> None:
        """Updates the costs by the wall time of the whole step: the streams wait for its planning too."""
        num_rows = num_attended = num_tokens = num_prompt_attended = num_streams = num_alone = num_looked_up = 0
        for span in batch.spans:
            count = len(span.token_ids)
            attended = count * (2 * span.first + count) // 2
            if span.is_stream:  # a draft token takes the same path through the model as a stream's token
                num_streams += 1
                num_alone += span.end - len(span.drafts)
                num_looked_up += 0 if span.id in drafted.by_id else len(span.drafts)
                num_rows += count
                num_attended += attended
            else:
                num_tokens += count
                num_prompt_attended += attended
        if not num_rows or step_s <= 0:
            return
        rows = (1.0, num_rows, num_attended)
        if self._drafts and self._streams.num_updates:
            self._observe_drafted(
                Outlook(num_streams, num_alone),
                num_drafts=num_rows - num_streams,
                num_looked_up=num_looked_up,
                num_right=drafted.num_looked_up,
                step_s=step_s,
                has_prompts=num_tokens > 0,
            )
        if num_tokens:
            self._observe_prompts((num_tokens, num_prompt_attended), step_s, alone_s=self._streams.predict(rows))
        else:
            self._observe_streams(rows, step_s)
        if self._ledger is not None:
            self._observe_drafts(self._ledger, batch, drafted, step_s)

    def _draft_costs(self, num_streams: int, num_attended: int) -> DraftCosts | None:
        if self._ledger is None:
            return None
        if num_streams > self._draft_streams:
            self._had_many = True
            return None
        if self._had_many and num_streams:
            self._had_many = False
            self._ledger.resume(self._streams.predict((1.0, num_streams, num_attended)))
        return self._ledger.costs(
            num_streams=num_streams,
            num_attended=num_attended,
            streams=self._streams,
            row_factor=self._factors.factor(num_streams) if num_streams else 1.0,
        )

    def _observe_drafts(self, ledger: DraftLedger, batch: Batch, drafted: Drafted, step_s: float) -> None:
        streams = [span.end - len(span.drafts) for span in batch.spans if span.is_stream]
        num_drafts = sum(len(span.drafts) for span in batch.spans if span.id in drafted.by_id)
        costs = ledger.costs(
            num_streams=len(streams),
            num_attended=sum(streams),
            streams=self._streams,
            row_factor=self._factors.factor(len(streams)) if streams else 1.0,
        )
        if costs is not None:
            ledger.observe(drafted, costs, num_drafts=num_drafts, step_s=step_s)

    def _observe_drafted(
        self,
        alone: Outlook,
        *,
        num_drafts: int,
        num_looked_up: int,
        num_right: int,
        step_s: float,
        has_prompts: bool,
    ) -> None:
        """Learns what drafts add to a step, and enters what the looked-up ones cost and saved. ``alone``: the step's
        streams without drafts; ``num_right`` of ``num_looked_up`` were accepted."""
        _, row_s, attended_s = self._streams.costs
        row_s += attended_s * alone.num_attended / alone.num_streams
        alone_s = self._streams.predict((1.0, alone.num_streams, alone.num_attended))
        plain = self._factors.plain(alone.num_streams)
        plain_s = alone_s if plain is None else plain * alone_s
        drafts_s = num_drafts * row_s * self._factors.factor(alone.num_streams) * plain_s / alone_s
        self._drafts_share += _SHARE_GAIN * (min(drafts_s / plain_s, _MOST_SHARE) - self._drafts_share)
        if not has_prompts:
            self._num_drafted = self._num_drafted + 1 if num_drafts else 0
            if num_drafts and plain is not None:  # beside prompts nobody knows what took so long
                # Steps scatter around their prediction, so one with drafts may be shorter than one without.
                drafts_s = min(step_s - plain_s, _MOST_LOSS * plain_s)
            self._factors.observe(alone.num_streams, num_drafts, step_s=step_s, alone_s=alone_s, row_s=row_s)
        saved_s = num_right * plain_s / alone.num_streams - drafts_s * num_looked_up / max(num_drafts, 1)
        self._account.enter(step_s=step_s, plain_s=plain_s, saved_s=saved_s)

    def _begins_probe(self) -> bool:
        """Whether the next step goes without prompt tokens; never two in a row, so that prompts advance."""
        # The machine may have been freed as the first prompts began: what is learned of them then only looks right.
        soon = self._num_surprises or self._prompts.num_updates < _PROBE_EVERY
        is_due = self._num_unprobed >= (_PROBE_APART if soon else _PROBE_EVERY)
        self._is_probing = not self._is_probing and (is_due or not self._streams.num_updates)
        return self._is_probing

    def _observe_streams(self, rows: tuple[float, ...], step_s: float) -> None:
        ratio = step_s / self._streams.predict(rows)
        is_surprising = self._streams.num_updates > 0 and _is_far(ratio)
        # Steps with as many rows as the one before show how fast the machine is, and not what a row costs: a machine
        # that is slow at times and then fast again would otherwise leave all cost with the largest part.
        keeps_ratios, self._last_rows = rows[1] == self._last_rows, rows[1]
        if is_surprising and ratio < 1 and keeps_ratios:  # nothing shortens a step but a machine that became faster
            factor = ratio
            self._streams.scale(factor)
            if self._prompts.num_updates <= _PROBE_APART:  # learned beside a time that was wrong: learn it anew
                self._prompts.num_updates = 0
        else:
            factor = self._streams.update(rows, step_s, keeps_ratios=keeps_ratios)
        if self._is_probing:  # a machine that has become slower or faster since the last probe is so for prompts too
            self._prompts.scale(factor)
        if self._withheld is not None and self._num_surprises > 1 and not is_surprising:
            # Not a delay, and the machine is as it was: the prompt tokens take so long, and more with each position.
            tokens, withheld_s = self._withheld
            self._prompts.update(tokens, withheld_s, given=self._streams.predict(rows))
        self._withheld = None
        # An estimate goes only part of the way to a measurement that is far above it: the next probe comes soon.
        self._num_unprobed, self._num_surprises, self._is_probing = 0, int(is_surprising), False

    def _observe_prompts(self, tokens: tuple[float, ...], step_s: float, *, alone_s: float) -> None:
        if not self._streams.num_updates:
            return
        self._num_unprobed += 1
        ratio = step_s / (alone_s + self._prompts.predict(tokens))
        if self._prompts.num_updates and _is_far(ratio):
            self._num_surprises += 1
            if self._num_unprobed >= _PROBE_APART:
                self._withheld = tokens, step_s
                return  # the next step is a probe: it shows whether the machine has changed
        self._prompts.update(tokens, step_s, given=alone_s)
        # A lower bound on the token's cost: steps that were fast by chance must not let in a whole prompt for long.
        token_s, attended_s = self._prompts.costs
        self._prompts.costs = (max(token_s, alone_s / self._most / 2), attended_s)


def _is_far(ratio: float) -> bool:
    """Whether a measured time over the predicted one is a surprise."""
    return not 1 / _SURPRISE < ratio < _SURPRISE
