// Package datasettext is what is told of data sets to a person, and their documents of -o json.
//
// It decides nothing and reads no store.
package datasettext
