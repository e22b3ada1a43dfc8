package scheduler

import "github.com/disdel/disdel"

// Tree lays the aggregation levels over workers: level 1 has as many clusters as it takes for each to hold at most
// fanIn workers, and a level is added above while there is more than one cluster (DiSDeL III-B.1c). Clusters of a level
// differ in size by at most one, and members keep their order, so that the average is taken in worker order. workers is
// at least 1 and fanIn at least 2.
func Tree(workers, fanIn int) []disdel.Level {
	var levels []disdel.Level
	for members := workers; len(levels) == 0 || members > 1; members = len(levels[len(levels)-1].Clusters) {
		levels = append(levels, disdel.Level{Height: len(levels) + 1, Clusters: clusters(members, fanIn)})
	}
	return levels
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

// An aggregation action reads at most readBytes of updates a round, a few seconds' work for a Redis server, so that
// what is lost with it is little, and no more than maxFanIn updates.
const (
	readBytes = 2 * disdel.GB
	maxFanIn  = 64
)

// FanIn is how many updates one aggregation action is given, at least two. DiSDeL III-B.1c gives it as many as its
// memory holds; here an action holds a few columns of them whatever their number, and what it reads is the bound.
func FanIn(update disdel.Bytes) int {
	return int(min(maxFanIn, max(2, readBytes/max(1, update))))
}
