package scheduler

import "github.com/disdel/disdel"

// Tree builds the aggregation levels over workers. Level 1 has as few clusters as possible with at most fanIn workers
// each, and levels are added until one has a single cluster (DiSDeL III-B.1c). Clusters of a level differ in size by
// at most one, and members keep their order, so that the average is computed in worker order. workers is at least 1
// and fanIn at least 2.
func Tree(workers, fanIn int) []disdel.Level {
	var levels []disdel.Level
	for members := workers; len(levels) == 0 || members > 1; members = len(levels[len(levels)-1].Clusters) {
		levels = append(levels, disdel.Level{Height: len(levels) + 1, Clusters: clusters(members, fanIn)})
	}
	return levels
}

// Sharded gives each of so many parts of the weights its own clusters at every level of a tree, and adds a level with
// one cluster that joins the parts. It returns the tree as it is for fewer than two shards.
func Sharded(tree []disdel.Level, shards int) []disdel.Level {
	if shards < 2 {
		return tree
	}
	var out []disdel.Level
	for i, l := range tree {
		sharded := disdel.Level{Height: l.Height, Shards: shards}
		below := 0 // clusters of a shard at the level below; shards share the workers
		if i > 0 {
			below = len(tree[i-1].Clusters)
		}
		for s := range shards {
			for _, c := range l.Clusters {
				var members []int
				for _, m := range c {
					members = append(members, s*below+m)
				}
				sharded.Clusters = append(sharded.Clusters, members)
			}
		}
		out = append(out, sharded)
	}
	join := disdel.Level{Height: len(tree) + 1, Clusters: [][]int{make([]int, shards)}, JoinShards: true}
	for s := range shards {
		join.Clusters[0][s] = s
	}
	return append(out, join)
}

func clusters(members, fanIn int) [][]int {
	n := (members + fanIn - 1) / fanIn
	out := make([][]int, n)
	for c := range out {
		for m := c * members / n; m < (c+1)*members/n; m++ {
			out[c] = append(out[c], m)
		}
	}
	return out
}

// An aggregation action reads at most readBytes of updates a round, a few seconds' work for a Redis server, and at most
// maxFanIn updates: little is lost if it fails.
const (
	readBytes = 2 * disdel.GB
	maxFanIn  = 64
)

// FanIn returns how many updates one aggregation action reads, at least two. In DiSDeL III-B.1c its memory limits
// them. Here an action has only a few columns of them in memory at a time, so the bytes that it reads are the limit.
func FanIn(update disdel.Bytes) int {
	return int(min(maxFanIn, max(2, readBytes/max(1, update))))
}
