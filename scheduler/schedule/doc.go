// Package schedule finds schedules: how many workers with how much memory a job is to have, epoch by epoch, so that it
// ends as soon as its budget allows (SIREN, INFOCOM 2019). It has a small simulated cloud (World), the best fixed
// choice in it (Best), paths of five numbers found by search (Search), and a policy network that is trained in it and
// goes on learning from jobs that really ran (Learn, Net.Improve).
//
// It is pure: equal arguments, equal answers, whatever the machine. It knows no job, no plan and no platform; the
// policies path and siren of package scheduler make worlds of what they have seen, and bench/policies of published
// numbers.
package schedule
