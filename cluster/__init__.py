"""Floor 3: workloads, pools, and the event engine that replays one on the other.

trace or generator -> `Workload` -> pools of instances -> what users would feel.
"""
