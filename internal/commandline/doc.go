// Package commandline reads command lines as people type them: flags before and behind operands, letters together, help
// asked for in any way; and says of a mistake what was probably meant.
//
// It stands around the parser, which it does not replace, and knows no command by name but for words of other programs.
package commandline
