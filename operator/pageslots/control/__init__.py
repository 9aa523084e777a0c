"""From objects to facts, from plans to deeds: what a cluster, one machine and the simulator share."""
