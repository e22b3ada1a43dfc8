// Package transcripts has requests to an Apache OpenWhisk with what it answered, and sends them to another one, to see
// what a client would notice. The real one was built from source and ran standalone, with the settings of clusters.
//
// What it tells of an answer are facts that clients go by: the status, a few headers, and the body by its fields and
// texts. Ids, times and durations are left out. It knows no platform: it is given an address and a key. Tests and
// bench/platform use it; no program that users have does.
package transcripts
