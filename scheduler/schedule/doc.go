// Package schedule finds schedules: how many workers with how much memory a job has in each epoch, so that it ends as
// soon as its budget allows (SIREN, INFOCOM 2019). World is a small simulated cloud, and Best finds the best fixed
// choice in it. Search finds paths of five numbers. Learn trains a policy network in that cloud; Net.Improve lets it
// learn from real jobs.
//
// It is deterministic on every machine, and knows no job, plan or platform. The policies path and siren of package
// scheduler make worlds of observations, and bench/policies makes them of published numbers.
package schedule
