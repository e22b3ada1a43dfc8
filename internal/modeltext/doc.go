// Package modeltext is networks and trained models as people read them: tables, and the documents of -o json.
package modeltext
