package ddb

// Verdict is the final word on a write of a lock's holder.
type Verdict int

// The verdicts. The zero value claims nothing.
const (
	Undecided Verdict = iota // no evidence is left
	Committed                // applied
	Expired                  // not applied: the lease ran out, nobody took over yet
	Lost                     // not applied, for ever: somebody else ended the hold
)

// lifeSpan is how many acquisitions are taken to fit into the time between a
// write and its verdict. Tokens of one life of an item are consecutive, while
// a new life starts at the microsecond of its first lock, so a token further
// ahead than this belongs to an item that was deleted and made anew.
const lifeSpan = 100_000

// Commit judges the failed condition of a holder's write that leaves the item
// in place (commit, release, hand-on), from the image. clean says that the
// attempt which failed was the first that can have reached the item.
func (l Lock) Commit(id string, token int64, exists, clean bool) Verdict {
	gone := Undecided
	if clean {
		gone = Lost
	}
	switch {
	case !exists:
		return gone
	case l.By == id && l.Held == token:
		if !clean {
			// An extension without an answer may still land, and then an
			// earlier attempt of this write.
			return Undecided
		}
		return Expired
	case l.Stolen == token, l.Held == token:
		return Lost
	case l.OtherLife(token), l.Stolen < 0, l.Stolen > token:
		return gone
	}
	// The item lives on, we hold it no longer, and whoever takes a hold from
	// its owner writes down its token: only our own write can have ended it.
	return Committed
}

// OtherLife reports whether the item is not the one on which token was given
// out: it was deleted, and perhaps made anew.
func (l Lock) OtherLife(token int64) bool {
	return l.Token < token || l.Token-token > lifeSpan
}

// Remove judges the failed condition of a holder's delete. valid says that the
// holder's deadline has not passed: only then nobody else can have ended the
// life of the item.
func (l Lock) Remove(id string, token int64, exists, clean, valid bool) Verdict {
	switch {
	case exists && l.By == id && l.Held == token && clean:
		return Expired
	case exists && l.By == id && l.Held == token:
		return Undecided
	case exists && !l.OtherLife(token) && (l.Stolen == token || l.Held == token):
		return Lost
	case valid && (!exists || l.OtherLife(token)):
		return Committed // also where the network resent the request
	case clean:
		return Lost
	}
	return Undecided
}
