// Package mlless writes a job's record as the three files that MLLess writes of a training, for who compares with it or
// has programs that read them: PREFIX.json, PREFIX_loss-time-history.csv and PREFIX_step-time-decomposition.csv.
// Headers and units are MLLess'; the values are what they say: MLLess books reads of Redis as its broker's, leaves the
// fetching of batches out of the total, and tells of one worker.
//
// The command line calls it. It refuses records of jobs whose workers did not exchange after every step, and to write
// over files.
package mlless
