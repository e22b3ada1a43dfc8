// Package labtext is what disdel lab shows: the same jobs under several policies, as a table and
// as a picture. It decides nothing, and runs nothing.
package labtext
