// Package secret keeps passwords out of the parameters of activations, which pass through OpenWhisk's queue and logs in
// clear: those who start an action seal them with a key that the action alone is given, in its code.
//
// It owns what is sealed and how. It does no I/O, and knows no request.
package secret
