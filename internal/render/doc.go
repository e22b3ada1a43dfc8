// Package render shows what services answer to people and programs: jobs, batches, estimates, networks, models, data
// sets and labs. It has the tables of the terminal and the documents of -o json.
//
// It decides nothing and reads no store. Every number is taken from the record, the estimate or the document.
package render
