// Package ledger is what the writers of a coordinator's ledgers agree on: the
// frame around an entry, the append rule, how an unknown outcome is settled,
// the floor that a trim leaves, checkpoints. It is generic over the fold that
// a ledger's entries add up to.
//
// It has two halves. Log is pure: one goroutine owns it, it holds the fold and
// its position, makes proposals and folds their outcomes. Client does the I/O,
// from as many goroutines as its caller likes; between a Proposal and its
// Outcome it keeps nothing. Neither starts a goroutine.
//
// The rule: a writer appends only at the last seq it has folded + 1, one
// append in flight per ledger. If the slot is taken it folds what is there and
// decides again. So nobody commits on a state that they have not seen.
package ledger
