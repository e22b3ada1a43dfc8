// Package datasettext prints data sets for people, and their documents of -o json.
//
// It decides nothing and reads no store.
package datasettext
