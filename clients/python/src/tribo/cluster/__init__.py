"""Work of one caller over many daemons: the results of one node, from all of them.

    from tribo.cluster import Cluster

    with Cluster(["node1:7410", "node2:7410"]) as cluster:
        for result in cluster.evaluate_grasps(mug, hand, poses):
            ...

A grasp's result depends on the request alone, so a cluster gives the same results as one daemon, in
the same order, for any number of daemons and even if some are lost. `tribo.cluster.on_ray` starts
the daemons as actors of Ray.
"""

from tribo.cluster.cluster import Cluster, ClusterJob, NodeReport, to_parquet

__all__ = ["Cluster", "ClusterJob", "NodeReport", "to_parquet"]
