// Package schedule finds schedules: how many workers with how much memory a job has in each epoch, so that it ends as
// soon as its budget allows (SIREN, INFOCOM 2019). It has a small simulated cloud (World), the best fixed choice in
// it (Best), paths of five numbers found by search (Search), and a policy network that is trained in it and goes on
// learning from real jobs (Learn, Net.Improve).
//
// It is deterministic on every machine, and knows no job, plan or platform. The policies path and siren of package
// scheduler make worlds of observations, and bench/policies makes them of published numbers.
package schedule
