"""What the numbers in the engine's arrays mean: one name for each."""

from __future__ import annotations

# A request's status, and why it was not served.
PENDING, FINISHED, REJECTED, UNFINISHED = 0, 1, 2, 3
STATUS = ("pending", "finished", "rejected", "unfinished")
NO_REASON, TOO_LARGE, QUEUE_FULL, NO_INSTANCE, PARENT_LOST, NO_PLACE = range(6)
REASON = ("", "too_large", "queue_full", "no_instance", "parent_lost", "no_place")

# Where a request is.
(OUTSIDE, WAITING, PREFILLING, HANDING_OFF, RETRYING, TRANSFERRING, DEQUANTISING, READY,
 DECODING, SWAPPED, LOADING, LOADED, WRITING) = range(13)  # fmt: skip

# What an instance may do: bits.
PREFILL, DECODE, MIXED = 1, 2, 3
ROLE = {"prefill": PREFILL, "decode": DECODE, "mixed": MIXED}

# What a step did, for times and logs.
IDLE, PREFILL_STEP, DECODE_STEP, MIXED_STEP = 0, 1, 2, 3

# Batching.
PREFILL_FIRST, DECODE_FIRST, CHUNKED, SPLITWISE = 0, 1, 2, 3
BATCHING = {
    "prefill_first": PREFILL_FIRST,
    "decode_first": DECODE_FIRST,
    "chunked": CHUNKED,
    "splitwise": SPLITWISE,
}

# Order of a queue.
FCFS, SHORTEST_PROMPT, PRIORITY = 0, 1, 2
ORDER = {"fcfs": FCFS, "shortest_prompt": SHORTEST_PROMPT, "priority": PRIORITY}

# Blocks taken at admission, and what happens when a decode finds none.
RESERVE_FINAL, RESERVE_PROMPT = 0, 1
RESERVE = {"final": RESERVE_FINAL, "prompt": RESERVE_PROMPT}
RECOMPUTE, SWAP = 0, 1
PREEMPTION = {"recompute": RECOMPUTE, "swap": SWAP}

# Routing. The last two are Splitwise's.
(ROUND_ROBIN, RANDOM, LEAST_REQUESTS, LEAST_TOKENS, LEAST_KV, LONGEST_PREFIX,
 TOKEN_JSQ, MIXED_POOL) = range(8)  # fmt: skip
ROUTING = {
    "round_robin": ROUND_ROBIN,
    "random": RANDOM,
    "least_requests": LEAST_REQUESTS,
    "least_tokens": LEAST_TOKENS,
    "least_kv": LEAST_KV,
    "prefix": LONGEST_PREFIX,
    "token_jsq": TOKEN_JSQ,
    "mixed_pool": MIXED_POOL,
}

# Hand-off of the KV.
AT_PREFILL_END, AT_ARRIVAL = 0, 1
CHOSEN_AT = {"prefill_end": AT_PREFILL_END, "arrival": AT_ARRIVAL}
SERIAL, LAYERWISE, STREAM = 0, 1, 2
OVERLAP = {"serial": SERIAL, "layerwise": LAYERWISE, "stream": STREAM}
NO_CONTENTION, NIC = 0, 1
CONTENTION = {"none": NO_CONTENTION, "nic": NIC}

# Which prefixes a prompt can find.
NO_PREFIXES, BY_RANK, BY_POOL = 0, 1, 2
PREFIX_CACHE = {"none": NO_PREFIXES, "rank": BY_RANK, "pool": BY_POOL}

# What becomes of output that another rank than the prompt's decoded.
RECOMPUTE_OUTPUT, WRITE_BACK, WRITE_TO_STORE = 0, 1, 2
NEXT_TURN = {
    "recompute": RECOMPUTE_OUTPUT,
    "write_back": WRITE_BACK,
    "shared": WRITE_TO_STORE,
}

# Who emits the first token.
BY_PREFILL, BY_DECODE = 0, 1
FIRST_TOKEN_FROM = {"prefill": BY_PREFILL, "decode": BY_DECODE}

# Timers.
FAULT, RECOVERY, ROLE_SWITCH = 0, 1, 2
TIMER = {"fault": FAULT, "recovery": RECOVERY, "role": ROLE_SWITCH}

# Rows of the winner trees: next step end, routers of prefill and decode, room for KV.
CLOCK, TO_PREFILL, TO_DECODE, ROOM = 0, 1, 2, 3

# Why the loop came back.
RUNNING, DONE, TIME_BOUND, EVENT_BOUND, NO_ROOM = 0, 1, 2, 3, 4
STOPPED = ("running", "done", "max_time", "max_events", "no_room")
