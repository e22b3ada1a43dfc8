// Package jobtext prints a job for people: its plan, its rounds and troubles while it runs, and its
// record.
//
// It decides nothing and reads no store. A Follower writes to one terminal and takes back its own lines alone.
package jobtext
