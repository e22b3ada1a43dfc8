//go:build !noasm

package kernel

//go:noescape
func pairProducts256(args *pairArgs)

//go:noescape
func pairSlopes256(args *pairArgs)

//go:noescape
func rowsPlain256(args *rowArgs)

//go:noescape
func rowsMomentum256(args *rowArgs)

//go:noescape
func rowsNesterov256(args *rowArgs)

//go:noescape
func rowsAdam256(args *rowArgs)

//go:noescape
func exactSquares256(args *elementArgs)

//go:noescape
func changes256(args *changeArgs)

//go:noescape
func changesSent256(args *changeArgs)

//go:noescape
func entrySums256(args *entryArgs)

//go:noescape
func entrySumsOnes256(args *entryArgs)

//go:noescape
func addEntries256(args *entryArgs)

//go:noescape
func addEntriesOnes256(args *entryArgs)
