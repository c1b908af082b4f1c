# SPDX-License-Identifier: Apache-2.0
"""What one rank does in an eager step, counted a second time from config.json, the layout and docs/models.md alone: submissions,
flops, collectives by (group, kind), copies, and the memory that plan names. Hidden states, weights and gradients in bf16; training with
sequence parallelism where tp > 1, gradients reduced behind the backward pass."""
import collections
import math

BF16, FP32 = 2, 4
FACTORS = {"all_reduce": lambda n: 2 * (n - 1) / n, "all_gather": lambda n: (n - 1) / n,
           "reduce_scatter": lambda n: (n - 1) / n, "all_to_allv": lambda n: (n - 1) / n}


def ceil(a, b):
    return -(-a // b)


def gemm(m, n, k, groups=1):
    return 2 * m * n * k * groups


class Model:
    """The sizes that config.json states, whatever the family calls them."""

    def __init__(self, config, layers=None):
        def first(*keys):
            return next((config[key] for key in keys if config.get(key)), 0)
        self.hidden, self.vocab, self.layers = config["hidden_size"], config["vocab_size"], layers or config["num_hidden_layers"]
        self.heads, self.is_tied = config["num_attention_heads"], config.get("tie_word_embeddings", False)
        self.kv_heads = config.get("num_key_value_heads", self.heads)
        self.head = config.get("head_dim", self.hidden // self.heads)
        self.ffn, self.window = config["intermediate_size"], config.get("sliding_window") or 0
        self.kv_rank, self.q_rank = config.get("kv_lora_rank", 0), config.get("q_lora_rank", 0)
        self.nope, self.rope, self.value = (config.get(key, 0) for key in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"))
        self.experts, self.top_k = first("num_experts", "num_local_experts", "n_routed_experts"), config.get("num_experts_per_tok", 0)
        self.expert_ffn = config.get("moe_intermediate_size", self.ffn)
        self.shared_ffn = first("shared_expert_intermediate_size") + config.get("n_shared_experts", 0) * self.expert_ffn
        self.first_moe = config.get("first_k_dense_replace", 0) if self.experts else self.layers
        self.groups, self.groups_chosen = config.get("n_group", 0), config.get("topk_group", 0)
        self.norms = 2 * self.hidden + self.q_rank + self.kv_rank

    def slides(self, layer):
        return self.window and layer % 2 == 0  # gpt-oss, the one with windows here

    def hit(self, ranks):
        """Chance that a rank of `ranks` has one of a token's experts: every set of top_k experts alike, within the groups."""
        own, k = self.experts // ranks, self.top_k
        if not self.groups_chosen:
            return 1 - math.comb(self.experts - own, k) / math.comb(self.experts, k)
        a_group, chosen, share = self.experts // self.groups, self.groups_chosen, max(1, own * self.groups // self.experts)
        own_of_group = min(own, a_group)
        total = 0
        for met in range(1, min(share, chosen) + 1):
            likely = math.comb(share, met) * math.comb(self.groups - share, chosen - met) / math.comb(self.groups, chosen)
            total += likely * (1 - math.comb(chosen * a_group - met * own_of_group, k) / math.comb(chosen * a_group, k))
        return total


class Step:
    """`workload` decode: batch, input, output; prefill: input; train: seq, micro, passes."""

    def __init__(self, model, layout, workload, **sizes):
        self.m, self.workload, self.sizes = model, workload, sizes
        self.tp, self.ep, self.dp = (layout.get(key, 1) for key in ("tp", "ep", "dp"))
        self.is_train = workload == "train"
        self.is_sharded = self.is_train and self.tp > 1
        self.sequences = {"decode": sizes.get("batch"), "prefill": 1, "train": sizes.get("micro")}[workload]
        self.length = {"decode": sizes.get("input", 0) + sizes.get("output", 0) // 2, "prefill": sizes.get("input"),
                       "train": sizes.get("seq")}[workload]
        self.tokens = self.sequences * (1 if workload == "decode" else self.length)
        self.shard = ceil(self.tokens, self.tp)
        self.routed = self.shard if self.ep > 1 else self.tokens
        self.expert_tp = 1 if self.ep > 1 else self.tp
        self.submissions = self.flops = 0
        self.counts, self.wire = collections.Counter(), collections.Counter()
        self.h2d = self.d2h = 0
        self.last_wire = 0  # over tp and ep in the last layer
        self.layer = -1
        if model.experts:
            self.plan_experts()
        if self.is_train:
            self.train()
        else:
            self.serve()

    # ---- operations ----

    def kernel(self, flops=0):
        self.submissions += 1
        self.flops += flops

    def collective(self, group, kind, size):
        n = {"tp": self.tp, "dp": self.dp, "ep": self.ep, "world": self.tp * self.dp,
             "expert_dp": self.tp * self.dp // self.ep if self.ep > 1 else self.dp}[group]
        if n == 1:
            return
        if group == "world" and 1 in (self.tp, self.dp):
            group = "tp" if self.dp == 1 else "dp"
        if group == "expert_dp" and self.ep == 1:
            group = "dp"
        sent = size * FACTORS[kind](n)
        self.submissions += 1
        self.counts[group, kind] += 1
        self.wire[group, kind] += sent
        self.last_wire += sent if self.layer == self.m.layers - 1 and group in ("tp", "ep") else 0

    def gather(self, width):
        if self.is_sharded:
            self.collective("tp", "all_gather", self.tokens * width * BF16)

    def reduce(self, width):
        self.collective("tp", "reduce_scatter" if self.is_sharded else "all_reduce", self.tokens * width * BF16)

    # ---- attention: (rows, n, k, matrices) ----

    def before(self):
        m = self.m
        if not m.kv_rank:
            return [(self.tokens, m.heads * m.head // self.tp + 2 * ceil(m.kv_heads, self.tp) * m.head, m.hidden, 1)]
        rows = self.shard if self.is_sharded else self.tokens  # every rank has the down-projections
        up = (self.tokens, m.kv_rank, m.nope, m.heads // self.tp) if self.workload == "decode" else (
            self.tokens, m.heads * (m.nope + m.value) // self.tp, m.kv_rank, 1)
        return [(rows, m.q_rank, m.hidden, 1), (self.tokens, m.heads * (m.nope + m.rope) // self.tp, m.q_rank, 1),
                (rows, m.kv_rank + m.rope, m.hidden, 1), up]

    def after(self):
        m = self.m
        if not m.kv_rank:
            return [(self.tokens, m.hidden, m.heads * m.head // self.tp, 1)]
        absorbed = [(self.tokens, m.value, m.kv_rank, m.heads // self.tp)] if self.workload == "decode" else []
        return absorbed + [(self.tokens, m.hidden, m.heads * m.value // self.tp, 1)]

    def attention_parameters(self):
        m = self.m
        if not m.kv_rank:
            return sum(n * k for _, n, k, _ in self.before() + self.after())
        return (m.hidden * (m.q_rank + m.kv_rank + m.rope) +
                m.heads // self.tp * (m.q_rank * (m.nope + m.rope) + m.kv_rank * (m.nope + m.value) + m.value * m.hidden))

    def core(self):
        m, seen = self.m, self.length
        if m.slides(self.layer):
            seen = min(seen, m.window)
        pairs = seen if self.workload == "decode" else seen * (seen + 1) // 2 + (self.length - seen) * seen
        a_pair = 4 * m.heads * m.head if not m.kv_rank else 2 * m.heads * (
            2 * m.kv_rank + m.rope if self.workload == "decode" else m.nope + m.rope + m.value)
        return self.sequences * pairs * a_pair // self.tp

    def latents(self):
        return (self.m.q_rank, self.m.kv_rank, self.m.rope) if self.m.kv_rank else (self.m.hidden,)

    def attention(self):
        self.kernel()  # norm
        for width in self.latents():
            self.gather(width)
        for shape in self.before():
            self.kernel(gemm(*shape))
        self.kernel()  # rotary, cache
        self.kernel(self.core())
        for shape in self.after():
            self.kernel(gemm(*shape))
        self.reduce(self.m.hidden)

    def attention_backward(self):
        self.gather(self.m.hidden)
        self.twice(*self.after())
        self.kernel(2.5 * self.core())
        self.kernel()  # rotary
        for width in self.latents()[:2]:  # again, for weight gradients: no projection multiplies the rotary part
            self.gather(width)
        self.twice(*self.before())
        for width in self.latents():
            self.reduce(width)
        self.kernel()  # norm

    def twice(self, *shapes):
        """Backward, each GEMM is two."""
        for shape in shapes:
            self.kernel(gemm(*shape))
            self.kernel(gemm(*shape))

    # ---- feed-forward ----

    def gated(self, rows, width, matrices=1):
        return (rows, 2 * width, self.m.hidden, matrices), (rows, self.m.hidden, width, matrices)

    def plan_experts(self):
        m, everyone = self.m, self.routed * self.ep
        chosen = max(1, m.experts / self.ep * (1 - (1 - m.top_k / m.experts) ** everyone))
        self.active = round(chosen)
        self.rows = math.ceil(everyone * m.top_k / self.ep / self.active)
        copies = m.top_k if self.is_train else self.ep * m.hit(self.ep)  # per-expert, per-rank
        self.dispatched = self.routed * copies * m.hidden * BF16

    def is_moe(self):
        return self.layer >= self.m.first_moe

    def multiply(self, shapes, is_backward):
        """A gated feed-forward part: two GEMMs, and what stands between them."""
        for index, shape in enumerate(shapes):
            if index:
                self.kernel()
            if is_backward:
                self.twice(shape)
            else:
                self.kernel(gemm(*shape))

    def feed_forward(self, is_backward=False):
        m = self.m
        if not is_backward:
            self.kernel()  # norm
        if self.is_moe():
            self.mixture(is_backward)
        else:
            self.gather(m.hidden)
            if is_backward:
                self.gather(m.hidden)
            self.multiply(self.gated(self.tokens, ceil(m.ffn, self.tp)), is_backward)
            self.reduce(m.hidden)
        if is_backward:
            self.kernel()  # norm

    def mixture(self, is_backward):
        m = self.m
        if self.ep == 1:
            self.gather(m.hidden)
        router = (self.routed, m.experts, m.hidden, 1)
        if is_backward:
            self.twice(router)
        else:
            self.kernel(gemm(*router))
            self.kernel()  # top-k
            self.kernel()  # weighted sum
        for _ in ("dispatch", "combine"):
            self.collective("ep", "all_to_allv", self.dispatched)
            self.kernel()  # permuted
        self.multiply(self.gated(self.rows, ceil(m.expert_ffn, self.expert_tp), self.active), is_backward)
        if m.shared_ffn:
            if self.ep == 1:
                self.gather(m.hidden)
            if self.ep == 1 and is_backward:
                self.gather(m.hidden)
            self.multiply(self.gated(self.routed, ceil(m.shared_ffn, self.expert_tp)), is_backward)
            if self.ep == 1 and self.is_sharded:
                self.reduce(m.hidden)
        if self.ep == 1:
            self.reduce(m.hidden)
        elif not self.is_sharded:
            self.collective("tp", "all_gather", self.tokens * m.hidden * BF16)

    # ---- steps ----

    def forward(self):
        self.kernel()  # embedding
        self.reduce(self.m.hidden)
        for self.layer in range(self.m.layers):
            self.attention()
            self.feed_forward()
        self.layer = -1
        self.kernel()  # norm

    def serve(self):
        m, rows = self.m, ceil(self.m.vocab, self.tp)
        logits = self.tokens if self.workload == "decode" else 1
        self.h2d = 24 * self.tokens + (4 * self.sequences * ceil(self.length, 16) if self.workload == "decode" else 0)
        self.d2h = 4 * self.sequences
        self.submissions += 2
        self.forward()
        self.kernel(gemm(logits, rows, m.hidden))
        self.collective("tp", "all_gather", logits * rows * self.tp * BF16)
        self.kernel()  # sample
        kept = self.sizes["input"] + self.sizes.get("output", 0)
        entry = BF16 * (m.kv_rank + m.rope if m.kv_rank else 2 * ceil(m.kv_heads, self.tp) * m.head)
        shared, experts, norms, _ = self.parameters()
        self.memory = {"weights": BF16 * (shared + experts + norms), "cache": self.sequences * entry * sum(
            min(kept, m.window) if m.slides(layer) else kept for layer in range(m.layers))}

    def parameters(self):
        """Of one rank: what is no expert, experts, norms; and what every rank of tp has and saw a share of the tokens."""
        m = self.m
        shared = (1 if m.is_tied else 2) * ceil(m.vocab, self.tp) * m.hidden
        experts, norms, partial = 0, m.hidden, m.hidden * self.is_sharded
        for layer in range(m.layers):
            shared += self.attention_parameters()
            norms += m.norms
            partial += (m.norms + (m.hidden * sum(self.latents()) if m.kv_rank else 0)) * self.is_sharded
            if layer < m.first_moe:
                shared += 3 * m.hidden * ceil(m.ffn, self.tp)
                continue
            experts += m.experts // self.ep * 3 * m.hidden * ceil(m.expert_ffn, self.expert_tp)
            shared += 3 * m.hidden * ceil(m.shared_ffn, self.expert_tp) + m.experts * m.hidden
            partial += m.experts * m.hidden + (3 * m.hidden * m.shared_ffn if self.ep > 1 else 0)
        return shared, experts, norms, partial

    def train(self):
        m, rows, passes = self.m, ceil(self.m.vocab, self.tp), self.sizes["passes"]
        self.h2d, self.d2h = 16 * self.tokens * passes, 4
        self.submissions += 2
        for _ in range(passes):
            self.forward()
            self.gather(m.hidden)
            self.kernel(gemm(self.tokens, rows, m.hidden))
            self.kernel()  # loss
            for _ in range(3):
                self.collective("tp", "all_reduce", self.tokens * FP32)
            self.gather(m.hidden)
            self.twice((self.tokens, rows, m.hidden, 1))
            self.reduce(m.hidden)
            self.kernel()  # norm
            for self.layer in reversed(range(m.layers)):
                self.feed_forward(is_backward=True)
                self.attention_backward()
            self.layer = -1
            self.gather(m.hidden)
            self.kernel()  # embedding
        shared, experts, norms, partial = self.parameters()
        self.collective("dp", "all_reduce", BF16 * (shared + norms))
        if experts:
            self.collective("expert_dp", "all_reduce", BF16 * experts)
        if partial:
            self.collective("tp", "all_reduce", BF16 * partial)
        self.kernel()  # gradient norm
        self.collective("world", "all_reduce", FP32)
        self.kernel()  # Adam
        weights = BF16 * (shared + experts + norms)
        self.memory = {"weights": weights, "gradients": weights, "optimizer": 6 * weights}

    def link_bytes(self):
        """Sent over tp and ep in the last layer, for a token of the EP group, or of the replica."""
        tokens = self.tokens * self.sizes.get("passes", 1) * (self.ep / self.tp if self.ep > 1 else 1)
        return self.last_wire / tokens
